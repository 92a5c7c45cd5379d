// SPDX-License-Identifier: Apache-2.0
#include "ranks/judge.hpp"

#include <algorithm>

#include "fmt/format.h"

namespace ranks_model {
namespace {

using gpudiag::Culprit;
using gpudiag::CulpritKind;
using gpudiag::LatePattern;

bool kind_fits(const Culprit& culprit, Fault fault) {
  switch (fault) {
    case Fault::kSlowCompute: return culprit.kind == CulpritKind::kCompute && culprit.pattern == LatePattern::kPersistent;
    case Fault::kSlowData: return culprit.kind == CulpritKind::kData && culprit.pattern == LatePattern::kPersistent;
    case Fault::kHostStall: return culprit.kind == CulpritKind::kHost && culprit.pattern == LatePattern::kPersistent;
    case Fault::kSlowLink: return culprit.kind == CulpritKind::kNetwork && culprit.pattern == LatePattern::kPersistent;
    case Fault::kPeriodic: return culprit.kind == CulpritKind::kHost && culprit.pattern == LatePattern::kPeriodic;
    case Fault::kRotating: return culprit.kind == CulpritKind::kHost && culprit.pattern == LatePattern::kRotating;
    case Fault::kNone: return false;
  }
  return false;
}

// Of those that take turns the recorded iterations cut off the first, and one whose turn costs nothing
// may be left out: nine in ten must be named, and nobody else.
bool ranks_fit(const Culprit& culprit, const Truth& truth, Fault fault) {
  const auto is_guilty = [&](std::uint32_t r) {
    return std::find(truth.guilty.begin(), truth.guilty.end(), r) != truth.guilty.end();
  };
  if (!std::all_of(culprit.ranks.begin(), culprit.ranks.end(), is_guilty)) return false;
  if (fault != Fault::kRotating) return culprit.ranks.size() == truth.guilty.size();
  return (culprit.ranks.size() + 2) * 10 >= truth.guilty.size() * 9;
}

}  // namespace

Verdict judge(const Job& job, Fault fault, const gpudiag::JobReport& report) {
  Verdict verdict;
  const auto& culprits = report.blame.culprits;
  for (const Culprit& culprit : culprits)
    verdict.said += fmt::format("{}{} {} on {}{} late {:.2f} ms cost {:.1f} %", verdict.said.empty() ? "" : "; ",
                                name_of(culprit.pattern), name_of(culprit.kind),
                                fmt::join(culprit.ranks.begin(),
                                          culprit.ranks.begin() + std::min<std::ptrdiff_t>(4, std::ssize(culprit.ranks)), ","),
                                culprit.ranks.size() > 4 ? fmt::format(" and {} more", culprit.ranks.size() - 4) : "",
                                static_cast<double>(culprit.late.ns) / 1e6, 100 * culprit.share);
  if (fault == Fault::kNone) {
    verdict.rank_right = verdict.kind_right = culprits.empty();
    verdict.false_alarm = !culprits.empty();
    return verdict;
  }
  if (culprits.empty() || !ranks_fit(culprits.front(), job.truth, fault)) return verdict;
  // Nobody else beside it.
  verdict.rank_right = culprits.size() == 1;
  verdict.kind_right = verdict.rank_right && kind_fits(culprits.front(), fault);
  return verdict;
}

}  // namespace ranks_model
