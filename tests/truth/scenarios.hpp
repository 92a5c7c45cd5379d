// SPDX-License-Identifier: Apache-2.0
// Flow: [scenarios] -> job -> program -> machine -> tracer -> engine under test; judge compares.
// Which jobs are judged.
#pragma once

#include <vector>

#include "judge.hpp"

namespace gpudiag::truth {

/// Each basic trouble alone, in the settings every engine must master: nothing else; a harmless
/// `.item()` each step; an autograd thread; a host-bound forward before a GPU-bound backward;
/// beside a background thread that copies and waits.
std::vector<Scenario> basic_scenarios();

/// Single troubles in harder settings: several streams, prefetching, late events, blocking copies,
/// a full launch queue, two devices, graphs, poorer traces.
std::vector<Scenario> hard_scenarios();

/// Each sub-cause alone: those that calls show by themselves, and those that a hook or the watcher names.
std::vector<Scenario> sub_cause_scenarios();

/// Two troubles at once.
std::vector<Scenario> pair_scenarios();

/// Troubles too small to cost anything: nothing may be charged for them.
std::vector<Scenario> harmless_scenarios();

/// One job twice: plain, and with something in it that changes nothing about what it costs.
struct Oddity {
  Scenario plain;
  Scenario odd;
};
std::vector<Oddity> oddities();

/// A job drawn at random, with one to three troubles.
Scenario random_scenario(std::uint64_t seed);

}  // namespace gpudiag::truth
