// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// The one table of kernels that communicate: NCCL's, and those of NVSHMEM, DeepEP, RCCL and the
// all-reduces of inference engines. What a kernel's name alone says of the collective is read here.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "record/collective.hpp"

namespace gpudiag {

/// What the user adds to the table (GPUDIAG_COMMUNICATION): `regex=kind`, where kind is one of
/// kCollectiveKindNames or `none` for kernels that the table takes for communication and that are not.
class CommunicationTable {
 public:
  /// A rule that cannot be read is left out and listed in errors().
  explicit CommunicationTable(const std::vector<std::string>& rules = {});

  /// What the name of a kernel says; nothing where it does not communicate. Slow: ask once for a name.
  std::optional<CollectiveInfo> look_up(std::string_view kernel) const;
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  struct Rule {
    std::regex pattern;
    std::optional<CollectiveKind> kind;  ///< none: no communication
  };
  std::vector<Rule> rules_;
  std::vector<std::string> errors_;
};

}  // namespace gpudiag
