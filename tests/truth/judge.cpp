// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "support/analyse.hpp"

namespace gpudiag::truth {
namespace {

// The steady part begins when the host has run as far ahead as it ever will, and ends before the
// cut; both are multiples of the checkpoint's period.
constexpr std::size_t kFirstSteady = 8;
constexpr std::size_t kCutAtEnd = 4;

double ns(DurationNs duration) {
  return static_cast<double>(duration.ns);
}

bool identity_holds(const IterationLedger& ledger) {
  DurationNs idle;
  for (DurationNs part : ledger.idle_by_cause) idle += part;
  return ledger.idle == idle &&
         ledger.wall == ledger.compute + ledger.communication + ledger.copy + ledger.idle;
}

bool agrees(const IterationLedger& ledger, const Window& window) {
  return ledger.start == window.start && ledger.wall == window.wall() &&
         ledger.compute == window.compute && ledger.copy == window.copy &&
         ledger.communication == DurationNs{};
}

void add_truth(Figures& figures, const Window& window) {
  figures.wall += ns(window.wall());
  figures.compute += ns(window.compute);
  figures.copy += ns(window.copy);
  figures.idle += ns(window.idle);
  ++figures.iterations;
}

void add_engine(Figures& figures, const IterationLedger& ledger) {
  figures.engine_wall += ns(ledger.wall);
  figures.engine_compute += ns(ledger.compute);
  figures.engine_copy += ns(ledger.copy);
  figures.engine_communication += ns(ledger.communication);
  figures.engine_idle += ns(ledger.idle);
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    figures.charge[c] += ns(ledger.idle_by_cause[c]);
    figures.replay_cost[c] += ns(ledger.replay_cost[c]);
  }
  if (ledger.valid()) ++figures.valid;
}

void divide(Figures& figures) {
  const auto n = static_cast<double>(figures.iterations);
  for (double* figure : {&figures.wall, &figures.compute, &figures.copy, &figures.idle,
                         &figures.engine_wall, &figures.engine_compute, &figures.engine_copy,
                         &figures.engine_communication, &figures.engine_idle})
    *figure /= n;
  for (double& figure : figures.charge) figure /= n;
  for (double& figure : figures.replay_cost) figure /= n;
}

Troubles without(Troubles troubles, Trouble one) {
  troubles.erase(one);
  return troubles;
}

struct Largest {
  std::string name;
  double change = 0;

  void consider(std::string_view candidate, double its_change) {
    if (std::abs(its_change) <= std::abs(change)) return;
    change = its_change;
    name = candidate;
  }
};

bool is_sound(const Figures& figures) {
  return figures.windows_agree && figures.identity_holds && figures.valid == figures.iterations;
}

// The category other than the trouble's own that changed most.
void compare_others(Verdict& verdict, const Figures& with, const Figures& base) {
  Largest largest;
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (static_cast<Cause>(c) != verdict.cause)
      largest.consider(kCauseNames[c], with.charge[c] - base.charge[c]);
  verdict.worst_other = largest.name;
  verdict.worst_change = largest.change;
}

Figures true_figures(const Scenario& scenario, const JobShape& shape, const Troubles& possible,
                     const Troubles& present) {
  const Program program = write_job(shape, possible, present);
  Figures figures;
  const std::vector<Window> windows =
      measure(program, execute(program), scenario.device, Cut::kAllDone);
  for (std::size_t i = kFirstSteady; i + kCutAtEnd < windows.size(); ++i)
    add_truth(figures, windows[i]);
  divide(figures);
  return figures;
}

// The idle time that `trouble` still costs when all others have been removed, those of the shape
// included.
double idle_removed_last(const Scenario& scenario, Trouble trouble, bool free_launches) {
  Troubles possible = scenario.troubles;
  Troubles present{trouble};
  if (free_launches) possible.insert(Trouble::kLaunch);
  const JobShape shape = without_waits(scenario.shape);
  const double with = true_figures(scenario, shape, possible, present).idle;
  return with - true_figures(scenario, shape, possible, {}).idle;
}

// Between the first and the last place in the order of removal.
void allow(Verdict& verdict, const Scenario& scenario, double removed_first) {
  verdict.least_charge = verdict.most_charge = removed_first;
  if (scenario.strict) return;
  for (bool free_launches : {false, true}) {
    const double last = idle_removed_last(scenario, verdict.trouble, free_launches);
    verdict.least_charge = std::min(verdict.least_charge, last);
    verdict.most_charge = std::max(verdict.most_charge, last);
  }
}

// The share of the steady part's batches that were not ready when they were asked for.
double late_batches(const Scenario& scenario, const Troubles& present) {
  const Program program = write_job(scenario.shape, scenario.troubles, present);
  const History run = execute(program);
  double late = 0;
  double all = 0;
  for (const Taken& batch : run.taken) {
    if (batch.semaphore != kBatchSemaphore || batch.asked < run.marks[kFirstSteady].at) continue;
    all += 1;
    late += batch.waited ? 1 : 0;
  }
  return all == 0 ? 0 : late / all;
}

// A batch that is ready leaves no trace of when it came to be. So where workers keep up with the
// job only because of the trouble, no record can tell what removing it would bring.
bool is_knowable(const Scenario& scenario, Trouble trouble) {
  if (trouble == Trouble::kLoaderWorkers || !scenario.troubles.contains(Trouble::kLoaderWorkers))
    return true;
  const double late = late_batches(scenario, scenario.troubles);
  return late > 0.95 || late_batches(scenario, without(scenario.troubles, trouble)) < late + 0.01;
}

// The findings of the steady part, as a report would have them.
class SteadyPart {
 public:
  explicit SteadyPart(std::size_t windows)
      : scatter_(windows > kFirstSteady + kCutAtEnd ? windows - kFirstSteady - kCutAtEnd : 0) {
    basis_.steady = true;
    basis_.torch = true;
    basis_.quality.records = 10'000;
  }
  void add(const IterationLedger& ledger) {
    ++basis_.iterations;
    basis_.sum.add(ledger);
    basis_.evidence.add(ledger);
    scatter_.add(ledger);
    basis_.launches += ledger.launches;
    basis_.operations += ledger.operations;
  }
  const RankBasis& basis() const { return basis_; }
  Diagnosis diagnose() {
    basis_.scatter = {scatter_};
    return gpudiag::diagnose({&basis_, 1});
  }

 private:
  RankBasis basis_;
  CostScatter scatter_;
};

// The wall time of the job without these causes, whether they are troubles of it or of its shape.
double wall_without(const Scenario& scenario, const std::set<FindingCause>& causes) {
  JobShape shape = scenario.shape;
  Troubles possible = scenario.troubles, present = scenario.troubles;
  std::erase_if(present, [&](Trouble trouble) {
    return causes.contains(finding_cause(cause_of(trouble, scenario.shape)));
  });
  if (causes.contains(FindingCause::kSync)) shape = without_waits(shape);
  if (causes.contains(FindingCause::kLaunchOverhead)) possible.insert(Trouble::kLaunch);
  if (causes.contains(FindingCause::kCopy)) shape.batch_bytes = 0;
  return true_figures(scenario, shape, possible, present).wall;
}

// What each cause that the job may have really costs.
class TrueCosts {
 public:
  TrueCosts(const Scenario& scenario, double wall) {
    std::set<FindingCause> causes{FindingCause::kSync, FindingCause::kLaunchOverhead, FindingCause::kCopy};
    for (Trouble trouble : scenario.troubles) causes.insert(finding_cause(cause_of(trouble, scenario.shape)));
    for (FindingCause cause : causes) costs_[cause] = wall - wall_without(scenario, {cause});
    together_ = wall - wall_without(scenario, causes);
  }
  double of(FindingCause cause) const {
    const auto known = costs_.find(cause);
    return known == costs_.end() ? 0 : known->second;
  }
  std::pair<FindingCause, double> dearest() const {
    return *std::max_element(costs_.begin(), costs_.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
  }
  double sum() const {
    double sum = 0;
    for (const auto& [cause, cost] : costs_) sum += std::max(0.0, cost);
    return sum;
  }
  double together() const { return together_; }

 private:
  std::map<FindingCause, double> costs_;
  double together_ = 0;
};

bool near(double value, double least, double most, double wall) {
  const double slack = Verdict::kTolerance * wall;
  return value >= least - slack && value <= most + slack;
}

}  // namespace

std::string name_of(const Scenario& scenario) {
  std::string troubles;
  for (Trouble trouble : scenario.troubles)
    troubles += (troubles.empty() ? "" : "+") + std::string{name_of(trouble)};
  return troubles + " in " + scenario.setting;
}

Figures run_job(const Scenario& scenario, const Troubles& present) {
  const Program program = write_job(scenario.shape, scenario.troubles, present);
  const History run = execute(program);
  NameTable names;
  const std::vector<Record> records = trace(program, run, scenario.tracer, names);
  EngineOptions options;
  options.range_rules.assign(kRangeRules.begin(), kRangeRules.end());
  options.launch_queue_depth = scenario.shape.queue_depth;
  const auto analysis = testing::analyse(records, names, options);
  const auto ledgers = testing::ledgers_of(analysis, DeviceId{scenario.device});
  const auto windows = measure(program, run, scenario.device, Cut::kLaunchedLast);
  const auto done = measure(program, run, scenario.device, Cut::kAllDone);

  Figures figures;
  SteadyPart steady(windows.size());
  figures.windows_agree = true;
  figures.identity_holds = std::all_of(ledgers.begin(), ledgers.end(), identity_holds);
  for (std::size_t i = kFirstSteady; i + kCutAtEnd < windows.size(); ++i) {
    add_truth(figures, done[i]);
    auto found = std::find_if(ledgers.begin(), ledgers.end(), [&](const IterationLedger& ledger) {
      return agrees(ledger, windows[i]);
    });
    if (found == ledgers.end())
      figures.windows_agree = false;
    else {
      add_engine(figures, *found);
      steady.add(*found);
    }
  }
  divide(figures);
  figures.what_if = steady.basis().sum.what_if;
  figures.diagnosis = steady.diagnose();
  return figures;
}

std::vector<Verdict> judge(const Scenario& scenario) {
  const Figures all = run_job(scenario, scenario.troubles);
  const bool single = scenario.troubles.size() == 1;
  const Figures none = run_job(scenario, {});
  std::vector<Verdict> verdicts;
  for (Trouble trouble : scenario.troubles) {
    if (!is_knowable(scenario, trouble)) continue;
    const Figures first = single ? none : run_job(scenario, without(scenario.troubles, trouble));
    const auto c = static_cast<std::size_t>(cause_of(trouble, scenario.shape));
    Verdict verdict;
    verdict.trouble = trouble;
    verdict.cause = cause_of(trouble, scenario.shape);
    verdict.wall = all.wall;
    verdict.with = all;
    verdict.true_cost = all.wall - first.wall;
    // What little the job has of this cause without the trouble is not the trouble's. Of launching
    // nothing is left.
    verdict.replay_cost = all.replay_cost[c];
    if (trouble != Trouble::kLaunch) verdict.replay_cost -= first.replay_cost[c];
    verdict.charge = all.charge[c] - first.charge[c];
    allow(verdict, scenario, all.idle - first.idle);
    if (scenario.strict) compare_others(verdict, all, none);
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::optional<Leading> judge_leading(const Scenario& scenario) {
  const Figures all = run_job(scenario, scenario.troubles);
  const TrueCosts costs(scenario, all.wall);
  // Where causes hide each other no one of them leads.
  if (costs.together() - costs.sum() >= 0.04 * all.wall) return std::nullopt;
  const auto [dearest, most] = costs.dearest();
  const bool none = most < 0.01 * all.wall;
  // Near the threshold of a finding either answer will do.
  if (!none && most < 0.04 * all.wall) return std::nullopt;
  Leading leading;
  leading.wanted = none ? "none" : name_of(dearest);
  leading.found = all.diagnosis.verdict;
  if (all.diagnosis.findings.empty() || none) {
    leading.right = leading.found == leading.wanted;
    return leading;
  }
  const Finding& first = all.diagnosis.findings.front();
  const bool compiling = first.cause == FindingCause::kRecompilation;
  // Of an upper bound, which launching is, the rank does not go by the cost.
  if (dearest == FindingCause::kLaunchOverhead && first.cause != dearest) return std::nullopt;
  leading.right = costs.of(compiling ? FindingCause::kHost : first.cause) >= most - 0.03 * all.wall;
  if (scenario.sub_cause != SubCause::kNone) {
    leading.wanted += fmt::format(" ({})", name_of(scenario.sub_cause));
    leading.found += fmt::format(" ({})", name_of(first.sub_cause));
    leading.right = leading.right && first.sub_cause == scenario.sub_cause;
  }
  return leading;
}

std::optional<BothRemoved> judge_both(const Scenario& scenario) {
  if (scenario.troubles.size() != 2) return std::nullopt;
  const Cause a = cause_of(*scenario.troubles.begin(), scenario.shape);
  const Cause b = cause_of(*scenario.troubles.rbegin(), scenario.shape);
  const Figures all = run_job(scenario, scenario.troubles);
  for (const WhatIfSum& answer : all.what_if) {
    const Removal first = Removal::of(a), second = Removal::of(b);
    if (answer.without != Question{first, second} && answer.without != Question{second, first}) continue;
    return BothRemoved{all.wall, all.wall - wall_without(scenario, {finding_cause(a), finding_cause(b)}),
                       ns(answer.saved) / static_cast<double>(answer.iterations)};
  }
  return std::nullopt;
}

bool BothRemoved::right() const { return near(replay_cost, true_cost, true_cost, wall); }

Difference compare(const Scenario& plain, const Scenario& odd) {
  const Figures a = run_job(plain, plain.troubles);
  const Figures b = run_job(odd, odd.troubles);
  Largest largest;
  largest.consider("compute", b.engine_compute - a.engine_compute);
  largest.consider("communication", b.engine_communication - a.engine_communication);
  largest.consider("copy", b.engine_copy - a.engine_copy);
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    largest.consider(kCauseNames[c], b.charge[c] - a.charge[c]);
    largest.consider(std::string{kCauseNames[c]} + " by replay",
                     b.replay_cost[c] - a.replay_cost[c]);
  }
  return {a.wall, b.wall - a.wall, largest.name, largest.change, is_sound(a) && is_sound(b)};
}

bool Difference::right() const {
  return sound && std::abs(worst_change) <= Verdict::kTolerance * wall;
}

std::string explain(const Difference& difference) {
  return fmt::format("of {:.3f} ms: wall really changes by {:.2f} %, {} by {:.2f} %{}",
                     difference.wall / 1e6, 100 * difference.true_change / difference.wall,
                     difference.worst.empty() ? "nothing else" : difference.worst,
                     100 * difference.worst_change / difference.wall,
                     difference.sound ? "" : ", windows, identity or validity are wrong");
}

bool Verdict::sound() const {
  return is_sound(with);
}
bool Verdict::replay_right() const {
  return near(replay_cost, true_cost, true_cost, wall);
}
bool Verdict::charge_right() const {
  return near(charge, least_charge, most_charge, wall);
}
bool Verdict::others_right() const {
  return std::abs(worst_change) <= kTolerance * wall;
}

std::string explain(const Verdict& verdict) {
  auto share = [&](double figure) {
    return fmt::format("{:.2f} %", 100.0 * figure / verdict.wall);
  };
  std::string text =
      fmt::format("{} of {:.3f} ms: true cost {}, replay {}, charge {} (allowed {} to {})",
                  name_of(verdict.trouble), verdict.wall / 1e6, share(verdict.true_cost),
                  share(verdict.replay_cost), share(verdict.charge), share(verdict.least_charge),
                  share(verdict.most_charge));
  if (!verdict.worst_other.empty())
    text += fmt::format(", {} changed by {}", verdict.worst_other, share(verdict.worst_change));
  if (!verdict.with.windows_agree)
    text += ", windows or what the device did in them differ from what happened";
  if (!verdict.with.identity_holds) text += ", the identity does not hold";
  if (verdict.with.valid != verdict.with.iterations)
    text += fmt::format(", {} of {} iterations valid", verdict.with.valid, verdict.with.iterations);
  text += "; idle:";
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (verdict.with.charge[c] != 0)
      text += fmt::format(" {} {}", kCauseNames[c], share(verdict.with.charge[c]));
  return text;
}

}  // namespace gpudiag::truth
