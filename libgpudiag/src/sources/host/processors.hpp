// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Whether the processors that the job may use have room, and whether its cgroup was held back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/time.hpp"

namespace gpudiag {

/// Clock ticks of the processors since the machine's start.
struct ProcessorTicks {
  std::uint64_t idle = 0;  ///< waiting for a disk included: a processor is free then
  std::uint64_t total = 0;

  bool operator==(const ProcessorTicks&) const = default;
};

/// Summed over those of `/proc/stat` that `allowed` holds; none where the text has none of them.
std::optional<ProcessorTicks> ticks_of_stat(std::string_view text, const std::vector<unsigned>& allowed);
/// How long the cgroup was out of processor time, of its `cpu.stat` of version 1 or 2.
std::optional<DurationNs> throttled_of(std::string_view cpu_stat);
/// The file that tells it, by the text of `/proc/self/cgroup`; `root` is /sys/fs/cgroup. Of several that
/// may be, in the order in which they should be tried.
std::vector<std::string> cpu_stat_files(std::string_view own_cgroups, const std::string& root);

struct ProcessorsLook {
  bool known = false;
  bool full = false;       ///< hardly a tenth of the time since the last look was anybody idle
  bool throttled = false;  ///< the cgroup was, since the last look
};

/// Reads the files at most once in kPeriod. Drain thread.
class Processors {
 public:
  static constexpr DurationNs kPeriod = milliseconds(100);

  explicit Processors(std::string proc = "/proc", std::string cgroups = "/sys/fs/cgroup");

  /// What was found last.
  const ProcessorsLook& look(TimePoint at);

 private:
  std::optional<ProcessorTicks> read_ticks() const;
  std::optional<DurationNs> read_throttled() const;

  std::string proc_;
  std::string cpu_stat_;  ///< empty: none
  std::vector<unsigned> allowed_;
  TimePoint looked_at_ = kTimeMin;
  std::optional<ProcessorTicks> ticks_;
  std::optional<DurationNs> throttled_;
  ProcessorsLook found_;
};

}  // namespace gpudiag
