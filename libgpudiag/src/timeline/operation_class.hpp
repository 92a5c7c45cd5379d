// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// Which of the three busy states an operation counts as.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "record/names.hpp"
#include "record/record.hpp"
#include "timeline/communication_kernel.hpp"

namespace gpudiag {

enum class OperationClass : std::uint8_t { kCompute, kCommunication, kCopy };

/// Whether a kernel of this name belongs to a collective or a transfer between devices, by the built-in
/// table.
bool is_communication_kernel(std::string_view name);

/// Classifies operations; each distinct kernel name is looked at once.
class OperationClassifier {
 public:
  /// `rules` as CommunicationTable takes them.
  explicit OperationClassifier(const NameTable& names, const std::vector<std::string>& rules = {})
      : names_(names), table_(rules) {}
  OperationClass class_of(const Record& operation);

 private:
  const NameTable& names_;
  CommunicationTable table_;
  std::vector<std::optional<bool>> is_communication_;
};

}  // namespace gpudiag
