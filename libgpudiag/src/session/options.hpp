// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: what the user sets.
// Every setting of gpudiag, in one table: its name, what it takes, what it is by default and what it
// does. The session, `gpudiag run --help` and the test of docs/configuration.md all read it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/time.hpp"

namespace gpudiag {

/// One row. `name` is the environment variable; the API's field is the part behind GPUDIAG_, in
/// small letters.
struct OptionSpec {
  std::string_view name;
  std::string_view values;         ///< as shown to people: "on|off", "FILE", "PERCENT"
  std::string_view default_value;  ///< as it would be written; empty: none
  std::string_view help;           ///< one sentence
};

std::span<const OptionSpec> option_table();

enum class LogMode : std::uint8_t { kPaced, kEvery, kOff };
enum class Choice : std::uint8_t { kAuto, kOn, kOff };

/// What the table's rows come to.
struct Settings {
  bool enabled = true;
  LogMode log = LogMode::kPaced;
  std::string log_file;            ///< empty: stderr
  std::string dir;                 ///< empty: no files
  bool record = false;
  Choice callbacks = Choice::kAuto;
  bool nvtx = true;
  Choice nccl = Choice::kAuto;     ///< auto: where NCCL has been told to load us
  bool watch = true;
  bool peers_wanted = true;
  std::string peers;               ///< "host:port" of rank 0; empty: the ranks of this host alone
  DurationNs stuck_after = seconds(10);
  std::vector<std::string> ranges;
  std::string iteration;
  bool pattern = true;
  std::string cupti;
  double budget_percent = 2.0;
  std::optional<std::uint32_t> rank;
  /// Name and text of everything that was set, for the record of the run.
  std::vector<std::pair<std::string, std::string>> given;
};

/// Text by variable name; nothing where it is not set.
using OptionSource = std::function<std::optional<std::string>(std::string_view name)>;

/// Whether the reader of a complaint goes on without the value.
enum class OnWrongValue : std::uint8_t { kUseDefault, kRefuse };

/// `overrides` (the API's fields) come before `environment`. A value that cannot be understood is
/// one message in `complaints`, which says what was found, what is allowed and, unless it will be
/// refused, what is used instead.
Settings read_settings(const std::map<std::string, std::string, std::less<>>& overrides,
                       const OptionSource& environment, std::vector<std::string>& complaints,
                       OnWrongValue on_wrong = OnWrongValue::kUseDefault);

/// The rank that a launcher (torchrun, Open MPI, Slurm, PMI) gave this process; 0 where none did.
std::uint32_t rank_of_launcher(const OptionSource& environment);

/// The variable of this process's environment.
std::optional<std::string> environment_variable(std::string_view name);

}  // namespace gpudiag
