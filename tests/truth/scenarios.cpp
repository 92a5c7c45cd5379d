// SPDX-License-Identifier: Apache-2.0
#include "scenarios.hpp"

#include <array>
#include <functional>

namespace gpudiag::truth {
namespace {

struct Setting {
  std::string_view name;
  std::function<void(Scenario&)> apply;
  bool costs_a_busy_host = false;  ///< harmless only where the host has time to spare
};

// Kernels so small that the device waits for each launch.
void make_tiny(JobShape& shape) {
  shape.forward_kernels = 200;
  shape.backward_kernels = 250;
  shape.forward_kernel = DurationNs{4'000};
  shape.backward_kernel = DurationNs{5'000};
  shape.optimizer_kernel = DurationNs{3'500};
}

// The forward pass is launched more slowly than it runs; the backward pass makes up for it.
void make_forward_host_bound(JobShape& shape) {
  shape.forward_kernels = 250;
  shape.forward_kernel = DurationNs{5'000};
}

Scenario scenario_of(Trouble trouble, const Setting& setting) {
  Scenario scenario{std::string{setting.name}, {}, {trouble}};
  scenario.strict = true;
  // Launching slowly is a trouble only of a job whose kernels are small.
  if (trouble == Trouble::kLaunch) make_tiny(scenario.shape);
  setting.apply(scenario);
  return scenario;
}

constexpr std::array kBasicTroubles{
    Trouble::kLoaderInline,   Trouble::kLoaderWorkers,   Trouble::kSync,   Trouble::kLaunch,
    Trouble::kLoggerLabelled, Trouble::kLoggerAnonymous, Trouble::kMalloc, Trouble::kCheckpoint};

constexpr std::array kFurtherTroubles{Trouble::kBlockingCopies, Trouble::kHostMalloc,
                                      Trouble::kGarbageCollection, Trouble::kEpochStart};

const std::vector<Setting>& basic_settings() {
  static const std::vector<Setting> settings{
      {"alone", [](Scenario&) {}},
      {"item_each_step", [](Scenario& s) { s.shape.item_each_step = true; }},
      {"autograd_thread", [](Scenario& s) { s.shape.autograd_thread = true; }},
      {"host_bound_forward", [](Scenario& s) { make_forward_host_bound(s.shape); }},
      {"background_copier", [](Scenario& s) { s.shape.background_copier = true; }},
  };
  return settings;
}

const std::vector<Setting>& hard_settings() {
  static const std::vector<Setting> settings{
      {"second_stream", [](Scenario& s) { s.shape.second_stream = true; }},
      {"prefetch_stream", [](Scenario& s) { s.shape.prefetch_stream = true; }},
      {"prefetch_thread", [](Scenario& s) { s.shape.prefetch_thread = true; }},
      {"late_event", [](Scenario& s) { s.shape.late_event = true; }},
      {"pageable_batch", [](Scenario& s) { s.shape.pageable_batch = true; }, true},
      {"tiny_copies", [](Scenario& s) { s.shape.tiny_copies = true; }},
      {"full_queue", [](Scenario& s) { s.shape.queue_depth = 128; }},
      {"two_devices", [](Scenario& s) { s.shape.two_devices = true; }},
      {"seen_on_second_device",
       [](Scenario& s) {
         s.shape.two_devices = true;
         s.device = 1;
       }},
      {"graphs", [](Scenario& s) { s.shape.graphs = true; }},
      {"wait_for_last_step", [](Scenario& s) { s.shape.wait_for_last_step = true; }},
      {"idle_syncs", [](Scenario& s) { s.shape.idle_syncs = 160; }, true},
      {"item_and_autograd",
       [](Scenario& s) {
         s.shape.item_each_step = true;
         s.shape.item_through_pageable = true;
         s.shape.autograd_thread = true;
       }},
      {"varying_workload", [](Scenario& s) { s.shape.vary_percent = 40; }},
      {"driver_calls", [](Scenario& s) { s.tracer.driver_calls = true; }},
      {"profiler_steps", [](Scenario& s) { s.tracer.profiler_steps = true; }},
      {"no_operator_ranges", [](Scenario& s) { s.tracer.operator_ranges = false; }},
      {"no_sync_records",
       [](Scenario& s) {
         s.shape.item_each_step = true;
         s.tracer.sync_records = false;
         s.tracer.event_records = false;
       }},
  };
  return settings;
}

// Two troubles of one category cannot be told apart by category, and a job has one loader.
bool can_go_together(Trouble a, Trouble b) {
  return cause_of(a) != cause_of(b);
}

}  // namespace

std::vector<Scenario> basic_scenarios() {
  std::vector<Scenario> scenarios;
  for (Trouble trouble : kBasicTroubles)
    for (const Setting& setting : basic_settings())
      scenarios.push_back(scenario_of(trouble, setting));
  return scenarios;
}

std::vector<Scenario> hard_scenarios() {
  std::vector<Scenario> scenarios;
  for (Trouble trouble : kBasicTroubles)
    for (const Setting& setting : hard_settings()) {
      scenarios.push_back(scenario_of(trouble, setting));
      if (trouble == Trouble::kLaunch && setting.costs_a_busy_host) scenarios.back().strict = false;
    }
  for (Trouble trouble : kFurtherTroubles)
    for (const Setting& setting : basic_settings())
      scenarios.push_back(scenario_of(trouble, setting));
  // Of large kernels, waits cost too little to prove anything.
  scenarios.push_back(scenario_of(Trouble::kDeviceSync, basic_settings()[3]));
  return scenarios;
}

std::vector<Scenario> sub_cause_scenarios() {
  std::vector<Scenario> scenarios;
  const auto add = [&](Trouble trouble, SubCause sub_cause, bool slow_forward) {
    Scenario scenario = scenario_of(trouble, basic_settings()[slow_forward ? 3 : 0]);
    scenario.setting = sub_cause == SubCause::kNone ? name_of(trouble) : name_of(sub_cause);
    scenario.sub_cause = sub_cause;
    // Waits before the optimizer take a lead that only an optimizer of small kernels needs.
    if (trouble == Trouble::kStreamSync || trouble == Trouble::kEventSync) {
      scenario.shape.optimizer_kernels = 250;
      scenario.shape.optimizer_kernel = DurationNs{5'000};
    }
    scenarios.push_back(scenario);
  };
  add(Trouble::kLoaderInline, SubCause::kInline, false);
  add(Trouble::kSync, SubCause::kItem, false);
  // Of large kernels, waits cost too little to prove anything.
  add(Trouble::kDeviceSync, SubCause::kDeviceSync, true);
  add(Trouble::kStreamSync, SubCause::kStreamSync, false);
  add(Trouble::kEventSync, SubCause::kEventSync, false);
  add(Trouble::kBlockingCopies, SubCause::kBlockingCopy, false);
  add(Trouble::kMalloc, SubCause::kNone, false);
  add(Trouble::kHostMalloc, SubCause::kHostMalloc, true);
  scenarios.back().shape.host_malloc = milliseconds(14);  // longer than the lead
  add(Trouble::kRetry, SubCause::kAllocatorRetry, false);
  add(Trouble::kLaunch, SubCause::kManySmallKernels, false);
  add(Trouble::kGarbageCollection, SubCause::kGarbageCollection, true);
  add(Trouble::kLoggerLabelled, SubCause::kLogging, false);
  const auto add_hooked = [&](Cause cause, SubCause first, SubCause last) {
    for (auto s = static_cast<int>(first); s <= static_cast<int>(last); ++s) {
      add(Trouble::kHooked, static_cast<SubCause>(s), false);
      if (first == SubCause::kNone) scenarios.back().setting = name_of(cause);
      scenarios.back().shape.hooked_cause = cause;
      scenarios.back().shape.hooked_sub_cause = static_cast<SubCause>(s);
    }
  };
  add_hooked(Cause::kDataLoading, SubCause::kInline, SubCause::kWorkerStart);
  add_hooked(Cause::kHost, SubCause::kGarbageCollection, SubCause::kCompile);
  add_hooked(Cause::kCheckpoint, SubCause::kNone, SubCause::kNone);
  add_hooked(Cause::kCommunicationWait, SubCause::kNone, SubCause::kNone);
  return scenarios;
}

std::vector<Scenario> pair_scenarios() {
  std::vector<Scenario> scenarios;
  for (std::size_t a = 0; a < kDrawnTroubles; ++a)
    for (std::size_t b = a + 1; b < kDrawnTroubles; ++b) {
      const auto first = static_cast<Trouble>(a);
      const auto second = static_cast<Trouble>(b);
      if (!can_go_together(first, second)) continue;
      Scenario scenario{"pair", {}, {first, second}};
      make_forward_host_bound(scenario.shape);
      scenarios.push_back(scenario);
    }
  return scenarios;
}

std::vector<Scenario> harmless_scenarios() {
  std::vector<Scenario> scenarios;
  auto add = [&](std::string_view name, Trouble trouble,
                 const std::function<void(JobShape&)>& apply) {
    Scenario scenario{std::string{name}, {}, {trouble}};
    apply(scenario.shape);
    scenarios.push_back(scenario);
  };
  // As long as the host has a lead of several steps, a few milliseconds of anything cost nothing.
  add("hidden_behind_lead", Trouble::kLoaderInline,
      [](JobShape& s) { s.inline_load = milliseconds(3); });
  add("hidden_behind_lead", Trouble::kLoaderWorkers,
      [](JobShape& s) { s.worker_period = milliseconds(5); });
  add("hidden_behind_lead", Trouble::kLoggerLabelled,
      [](JobShape& s) { s.logger = milliseconds(3); });
  add("hidden_behind_lead", Trouble::kLoggerAnonymous,
      [](JobShape& s) { s.logger = milliseconds(3); });
  add("large_kernels", Trouble::kDeviceSync, [](JobShape& s) { s.wait_for_last_step = true; });
  add("large_kernels", Trouble::kLaunch, [](JobShape&) {});
  return scenarios;
}

std::vector<Oddity> oddities() {
  const std::vector<Setting> changes{
      {"160_idle_syncs", [](Scenario& s) { s.shape.idle_syncs = 160; }},
      {"wait_for_last_step", [](Scenario& s) { s.shape.wait_for_last_step = true; }},
      {"background_copier", [](Scenario& s) { s.shape.background_copier = true; }},
      {"driver_calls", [](Scenario& s) { s.tracer.driver_calls = true; }},
      {"profiler_steps", [](Scenario& s) { s.tracer.profiler_steps = true; }},
  };
  std::vector<Oddity> found;
  auto add = [&](const Troubles& troubles) {
    for (const Setting& change : changes) {
      Scenario plain{std::string{change.name}, {}, troubles};
      Scenario odd = plain;
      change.apply(odd);
      found.push_back({plain, odd});
    }
  };
  add({});
  // Of these jobs the launching thread has time to spare, so that a few more calls cost nothing.
  for (Trouble trouble : {Trouble::kLoaderWorkers, Trouble::kSync, Trouble::kMalloc})
    add({trouble});
  return found;
}

Scenario random_scenario(std::uint64_t seed) {
  Noise draw(seed, "scenario");
  Scenario scenario{"random_" + std::to_string(seed), {}, {}};
  JobShape& shape = scenario.shape;
  shape.seed = seed;
  shape.forward_kernels = static_cast<std::uint32_t>(20 + draw.below(200));
  shape.backward_kernels = static_cast<std::uint32_t>(20 + draw.below(200));
  shape.optimizer_kernels = static_cast<std::uint32_t>(5 + draw.below(60));
  shape.forward_kernel = DurationNs{static_cast<std::int64_t>(4'000 + draw.below(50'000))};
  shape.backward_kernel = DurationNs{static_cast<std::int64_t>(4'000 + draw.below(60'000))};
  shape.optimizer_kernel = DurationNs{static_cast<std::int64_t>(3'000 + draw.below(60'000))};
  shape.launch = DurationNs{static_cast<std::int64_t>(2'500 + draw.below(4'000))};
  shape.dispatch = DurationNs{static_cast<std::int64_t>(2'000 + draw.below(15'000))};
  shape.item_each_step = draw.chance(40);
  shape.item_through_pageable = draw.chance(50);
  shape.autograd_thread = draw.chance(40);
  shape.background_copier = draw.chance(30);
  shape.second_stream = draw.chance(25);
  shape.prefetch_stream = draw.chance(25);
  shape.prefetch_thread = draw.chance(15);
  shape.late_event = draw.chance(15);
  shape.pageable_batch = draw.chance(20);
  shape.tiny_copies = draw.chance(15);
  shape.graphs = draw.chance(15);
  shape.wait_for_last_step = draw.chance(20);
  shape.idle_syncs = draw.chance(20) ? 80 : 0;
  shape.queue_depth = draw.chance(15) ? 128 : 1024;
  shape.inline_load = DurationNs{static_cast<std::int64_t>(1'000'000 + draw.below(20'000'000))};
  shape.worker_period = DurationNs{static_cast<std::int64_t>(2'000'000 + draw.below(20'000'000))};
  shape.logger = DurationNs{static_cast<std::int64_t>(500'000 + draw.below(16'000'000))};
  shape.mallocs = static_cast<std::uint32_t>(1 + draw.below(8));
  shape.vary_percent = draw.chance(25) ? 40 : 0;
  shape.save = DurationNs{static_cast<std::int64_t>(4'000'000 + draw.below(40'000'000))};
  scenario.tracer.driver_calls = draw.chance(30);
  scenario.tracer.operator_ranges = draw.chance(70);

  const std::uint64_t wanted = 1 + draw.below(3);
  for (int tries = 0; tries < 20 && scenario.troubles.size() < wanted; ++tries) {
    const auto trouble = static_cast<Trouble>(draw.below(kDrawnTroubles));
    bool fits = true;
    for (Trouble other : scenario.troubles) fits = fits && can_go_together(trouble, other);
    if (fits) scenario.troubles.insert(trouble);
  }
  return scenario;
}

}  // namespace gpudiag::truth
