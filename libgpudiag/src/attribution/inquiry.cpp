// SPDX-License-Identifier: Apache-2.0
#include "attribution/inquiry.hpp"

#include <algorithm>

#include "attribution/cost_scatter.hpp"

namespace gpudiag {
namespace {

// What takes less of the host's time can hide nothing that would be a finding (2 % of wall).
constexpr std::int64_t kLeastPart = 50;
// Half of that: two sub-causes of 1 % make one cause that is a finding.
constexpr std::int64_t kLeastSubPart = 100;

// Launches cannot be removed, and what is nobody's has no world.
bool is_askable(Cause cause) {
  return is_host_cause(cause) && cause != Cause::kLaunchOverhead;
}

}  // namespace

void Inquiry::add(const IterationLedger& ledger, const EvidenceTable& host) {
  wall_ += ledger.wall;
  together_ += ledger.replay_cost_all_host;
  saved_communication_ += ledger.replay_cost_communication;
  saved_copies_ += ledger.replay_cost_copy;
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (is_host_cause(static_cast<Cause>(c))) alone_ += ledger.replay_cost[c];
  host.for_each_host([&](Cause cause, SubCause sub_cause, DurationNs time) {
    if (!is_askable(cause)) return;
    host_[static_cast<std::size_t>(cause)] += time;
    if (sub_cause != SubCause::kNone) by_sub_cause_[Removal::of(cause, sub_cause)] += time;
  });
}

void Inquiry::add_busy(DurationNs communication, DurationNs copies) {
  communication_ += communication;
  copies_ += copies;
}

bool Inquiry::end_iteration() {
  if (++iterations_ < next_) return false;
  next_ *= 2;
  return true;
}

// What takes time enough to matter, the longest first.
std::vector<Inquiry::Weight> Inquiry::leading() const {
  std::vector<Weight> found;
  const auto consider = [&](Removal removal, DurationNs time) {
    if (time.ns * kLeastPart >= wall_.ns && time.ns > 0) found.emplace_back(removal, time);
  };
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (is_askable(static_cast<Cause>(c))) consider(Removal::of(static_cast<Cause>(c)), host_[c]);
  // Of what costs as much as it lasts nothing is hidden.
  consider({Removal::kCommunication, SubCause::kNone}, communication_ - saved_communication_);
  consider({Removal::kCopy, SubCause::kNone}, copies_ - saved_copies_);
  std::stable_sort(found.begin(), found.end(),
                   [](const Weight& a, const Weight& b) { return a.second > b.second; });
  return found;
}

// Of causes that have more than one, since else the cause's own world has the answer.
std::vector<Inquiry::Weight> Inquiry::sub_causes() const {
  std::vector<Weight> found;
  for (const auto& [removal, time] : by_sub_cause_) {
    const DurationNs rest = host_[removal.what] - time;
    if (time.ns * kLeastSubPart >= wall_.ns && rest.ns * kLeastSubPart >= wall_.ns)
      found.emplace_back(removal, time);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Weight& a, const Weight& b) { return a.second > b.second; });
  return found;
}

Inquiry::Questions Inquiry::choose() const {
  Questions chosen{};
  std::size_t count = 0;
  const auto ask = [&](const Question& question) {
    if (count < chosen.size()) chosen[count++] = question;
  };
  const std::vector<Weight> longest = leading();
  const bool hidden = (together_ - alone_).ns * kLeastPart >= wall_.ns;
  for (std::size_t sum = 1; sum + 1 < 2 * longest.size(); ++sum)
    for (std::size_t a = (sum + 1) / 2; a-- > 0;) {
      const std::size_t b = sum - a;
      if (b >= longest.size()) continue;
      const bool of_host = longest[a].first.is_cause() && longest[b].first.is_cause();
      if (hidden || !of_host) ask({longest[a].first, longest[b].first});
    }
  for (const auto& [removal, time] : sub_causes()) ask({removal, Removal{}});
  return chosen;
}

}  // namespace gpudiag
