// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The processes that make batches: children of the job that run its own program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/time.hpp"

namespace gpudiag {

struct Child {
  std::uint32_t pid = 0;
  TimePoint born;
};

/// The numbers of `/proc/<pid>/task/<tid>/children`.
std::vector<std::uint32_t> children_of(std::string_view text);

class Children {
 public:
  explicit Children(std::string proc = "/proc") : proc_{std::move(proc)} {}

  /// Children that `threads` of this process have made, and its first thread; of many kMost. Nothing
  /// where the kernel or a container does not list them.
  std::optional<std::vector<Child>> list(const std::vector<std::uint32_t>& threads);
  static constexpr std::size_t kMost = 32;

 private:
  struct Known {
    Child child;
    bool worker = false;
  };
  const Known* know(std::uint32_t pid);
  bool is_worker(std::uint32_t pid) const;

  std::string proc_;
  std::string own_program_;
  std::vector<Known> known_;
};

}  // namespace gpudiag
