// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// What a launch is to the search for iterations: a number for its name, one for name and shape, and
// whether it looks like an optimizer's.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/names.hpp"
#include "record/time.hpp"

namespace gpudiag {

enum class LaunchKind : std::uint8_t { kKernel, kGraph, kToDevice, kToHost, kOtherCopy, kMemset };

/// One launch, as the search sees it.
struct Launch {
  TimePoint start;           ///< of the host's call
  TimePoint after;           ///< where the host's longest silence before it began, since the launch before
  DurationNs pause;          ///< and how long that silence lasted
  std::uint32_t symbol = 0;  ///< of the name alone: sequence lengths vary, names stay
  std::uint32_t shaped = 0;  ///< of name and grid
  LaunchKind kind = LaunchKind::kKernel;
  bool optimizer = false;    ///< updates parameters, by its name
};

/// Does a kernel's name, mangled or not, say that it updates parameters?
bool is_optimizer_name(std::string_view name);

/// Symbols by name, the same in every run.
class LaunchNames {
 public:
  struct Entry {
    std::uint32_t symbol = 0;  ///< 0: not asked for yet
    bool optimizer = false;
  };
  /// O(1) for a name that was asked for before.
  Entry of(NameId id, const NameTable& names) {
    const std::size_t at = raw(id);
    if (at < entries_.size() && entries_[at].symbol != 0) return entries_[at];
    return look_up(id, names);
  }

 private:
  Entry look_up(NameId id, const NameTable& names);

  std::vector<Entry> entries_;
};

/// The symbol of a launch that has no kernel.
constexpr std::uint32_t symbol_of(LaunchKind kind) { return 0x9e3779b9u * (1u + static_cast<std::uint32_t>(kind)); }

/// `symbol` with the shape of the launch.
constexpr std::uint32_t with_shape(std::uint32_t symbol, std::uint64_t shape) {
  const std::uint64_t mixed = (symbol ^ shape) * 0xff51afd7ed558ccdu;
  return static_cast<std::uint32_t>(mixed >> 32);
}

}  // namespace gpudiag
