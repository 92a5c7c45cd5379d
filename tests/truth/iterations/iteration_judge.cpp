// SPDX-License-Identifier: Apache-2.0
#include "iterations/iteration_judge.hpp"

#include <algorithm>

namespace gpudiag::truth {
namespace {

constexpr std::int64_t kCall = 3'000;  // ns

/// Feeds a job to the detector.
class Feed {
 public:
  Feed(Rename rename, std::int64_t shift_ns) : rename_(rename), now_{shift_ns} {}

  void add(const MadeLaunch& made) {
    Launch launch;
    launch.after = now_;
    launch.pause = {made.pause_ns};
    launch.start = now_ + launch.pause;
    now_ = launch.start + DurationNs{kCall};
    launch.kind = kind_of(made.kind);
    launch.symbol = symbol_of(launch.kind);
    if (made.kind == Made::kKernel || made.kind == Made::kGraph) {
      const auto entry = known_.of(names_.intern(rename_ == nullptr ? made.name : rename_(made.name)), names_);
      launch.symbol ^= entry.symbol;
      launch.optimizer = entry.optimizer || made.updates;
    }
    launch.shaped = with_shape(launch.symbol, made.shape);
    pattern.add(launch);
  }

  LaunchPattern pattern;

 private:
  static LaunchKind kind_of(Made made) {
    switch (made) {
      case Made::kKernel: return LaunchKind::kKernel;
      case Made::kGraph: return LaunchKind::kGraph;
      case Made::kToDevice: return LaunchKind::kToDevice;
      case Made::kToHost: return LaunchKind::kToHost;
      case Made::kMemset: return LaunchKind::kMemset;
    }
    return LaunchKind::kKernel;
  }

  Rename rename_;
  TimePoint now_;
  NameTable names_;
  LaunchNames known_;
};

/// Iterations that are over when `launches` have been seen.
std::size_t over_at(const LaunchJob& job, std::size_t launches) {
  const auto after = std::ranges::upper_bound(job.iterations, launches, {}, &TrueIteration::end);
  return static_cast<std::size_t>(after - job.iterations.begin());
}

}  // namespace

std::size_t allowed_iterations(const JobPlan& plan) {
  const bool known = plan.graph ? plan.optimizer != Optimizer::kUnknown : plan.optimizer != Optimizer::kUnknown;
  return known ? 5 : 42;
}

std::vector<Turn> turns_of(const LaunchJob& job, Rename rename, std::int64_t shift_ns) {
  Feed feed{rename, shift_ns};
  for (const MadeLaunch& made : job.launches) feed.add(made);
  feed.pattern.finish();
  return feed.pattern.take_turns();
}

Judgement judge(const JobPlan& plan, Rename rename, std::int64_t shift_ns) {
  const LaunchJob job = make_job(plan);
  Feed feed{rename, shift_ns};
  Judgement judgement;
  for (std::size_t i = 0; i < job.launches.size(); ++i) {
    feed.add(job.launches[i]);
    if (!judgement.found_after && feed.pattern.state() == LaunchPattern::State::kFound)
      judgement.found_after = over_at(job, i + 1);
  }
  feed.pattern.finish();
  judgement.length = feed.pattern.length();
  const std::vector<Turn> turns = feed.pattern.take_turns();
  std::vector<TrueIteration> found;
  for (std::size_t i = 1; i < turns.size(); ++i)
    if (turns[i].kind == TurnKind::kTraining) found.push_back({turns[i - 1].index, turns[i].index});

  std::size_t usual = job.iterations.empty() ? 0 : job.iterations.back().end - job.iterations.back().begin;
  const std::size_t apart = 3 + static_cast<std::size_t>(plan.noise * 2 * static_cast<double>(usual));
  const auto near = [&](std::size_t a, std::size_t b) { return std::max(a, b) - std::min(a, b) <= apart; };
  std::vector<bool> taken(found.size());
  for (std::size_t i = 1; i + 1 < job.iterations.size(); ++i) {
    const bool before = turns.empty() || (job.iterations[i].end <= turns.front().index + apart && job.iterations[i].begin + apart < turns.front().index);
    if (before) {
      ++judgement.missed;
      continue;
    }
    ++judgement.expected;
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (taken[k] || !near(found[k].begin, job.iterations[i].begin) || !near(found[k].end, job.iterations[i].end)) continue;
      taken[k] = true;
      ++judgement.matched;
      break;
    }
  }
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (taken[k]) continue;
    // The first iteration has launches of its own, the last may be cut.
    const bool edge = !job.iterations.empty() && (found[k].begin < job.iterations[1].begin || found[k].begin + apart >= job.iterations.back().begin);
    judgement.invented += edge ? 0 : 1;
  }
  const double allowed_missing = plan.noise > 0 ? 0.05 : 0.02;
  const auto few = [&](std::size_t count) { return static_cast<double>(count) <= allowed_missing * static_cast<double>(judgement.expected); };
  if (turns.empty()) judgement.answer = plan.loops ? Answer::kUndecided : Answer::kRight;
  else if (!plan.loops || !few(judgement.invented)) judgement.answer = Answer::kWrong;
  else if (!few(judgement.expected - judgement.matched)) judgement.answer = Answer::kLate;
  else judgement.answer = judgement.missed <= 1 && judgement.found_after && *judgement.found_after <= allowed_iterations(plan) ? Answer::kRight : Answer::kLate;
  return judgement;
}

}  // namespace gpudiag::truth
