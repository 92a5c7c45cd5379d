// SPDX-License-Identifier: Apache-2.0
// Flow: job -> program -> machine -> tracer -> engine under test; [judge] compares.
// Puts an engine's figures beside the truth: what an iteration really costs with and without a
// trouble. All figures are nanoseconds an iteration over the steady part of a job.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "attribution/findings.hpp"
#include "attribution/ledger.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "tracer.hpp"

namespace gpudiag::truth {

/// A job, what may be wrong with it, and how it is traced.
struct Scenario {
  std::string setting;
  JobShape shape;
  Troubles troubles;
  TracerOptions tracer = {};
  std::uint32_t device = 0;
  /// One trouble in a job that is otherwise sound: then nothing but its own category may change.
  /// Else the shape itself may hold further causes (a host-bound part, a wait each step), and the
  /// trouble is judged as one of several.
  bool strict = false;
  /// That the leading finding should name; kNone: it is not asked for.
  SubCause sub_cause = SubCause::kNone;
};

/// `loader_inline+sync` in `autograd_thread`.
std::string name_of(const Scenario& scenario);

/// An iteration of a job, as the machine really ran it and as the engine put it.
struct Figures {
  double wall = 0, compute = 0, copy = 0, idle = 0;  ///< the truth
  double engine_wall = 0, engine_compute = 0, engine_copy = 0, engine_idle = 0;
  double engine_communication = 0;
  std::array<double, kCauseCount> charge{};  ///< the engine's idle_by_cause
  std::array<double, kCauseCount> replay_cost{};
  std::size_t iterations = 0;  ///< of the truth, in the steady part
  std::size_t valid = 0;       ///< that the engine found valid
  /// Every steady window and what the device did in it, to the nanosecond.
  bool windows_agree = false;
  bool identity_holds = false;  ///< attribution.md section 2, in every ledger
  std::vector<WhatIfSum> what_if;
  Diagnosis diagnosis;  ///< of the steady part
};

/// Runs the scenario's job with `present` of its troubles.
Figures run_job(const Scenario& scenario, const Troubles& present);

/// One trouble of one scenario.
struct Verdict {
  Trouble trouble{};
  Cause cause{};
  double wall = 0;       ///< with everything present
  double true_cost = 0;  ///< wall saved when it alone is removed: what the replay should say
  double replay_cost = 0;
  /// What may be charged: the idle time saved when removed first, and when removed last (strictly
  /// judged the same figure twice).
  double least_charge = 0, most_charge = 0;
  double charge = 0;
  /// Strictly judged: the category other than its own that changed most.
  std::string worst_other;
  double worst_change = 0;
  Figures with;

  static constexpr double kTolerance = 0.01;  // of wall
  bool replay_right() const;
  bool charge_right() const;
  bool others_right() const;
  bool sound() const;  ///< windows agree, identity holds, every steady iteration valid
  bool right() const { return sound() && replay_right() && charge_right() && others_right(); }
};

/// One verdict for each trouble of the scenario; what cannot be known is left out.
std::vector<Verdict> judge(const Scenario& scenario);

/// What the findings of a scenario led with, against what really costs most.
struct Leading {
  std::string wanted;  ///< cause and sub-cause, or `none`
  std::string found;
  bool right = false;
};
/// None where two costs are too near to each other for one to lead, or the shape's own causes might.
std::optional<Leading> judge_leading(const Scenario& scenario);

/// Of two troubles removed together, where the replay was asked about that.
struct BothRemoved {
  double wall = 0;
  double true_cost = 0;
  double replay_cost = 0;
  bool right() const;
};
std::optional<BothRemoved> judge_both(const Scenario& scenario);

/// Between two jobs that cost the same: how far the engine tells them apart.
struct Difference {
  double wall = 0;         ///< of the first
  double true_change = 0;  ///< of wall
  std::string worst;       ///< the ledger's entry that changed most
  double worst_change = 0;
  bool sound = false;
  bool right() const;
};
Difference compare(const Scenario& plain, const Scenario& odd);
std::string explain(const Difference& difference);

/// `true cost 12.3 %, replay 12.1 %, charge 11.9 % (allowed 12.0 to 12.3) …`
std::string explain(const Verdict& verdict);

}  // namespace gpudiag::truth
