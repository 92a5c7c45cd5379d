// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// The one table that says what a range name means: a cause of host time, an iteration, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/cause.hpp"
#include "record/names.hpp"
#include "record/record.hpp"

namespace gpudiag {

/// How much of what happens inside a range belongs to it (attribution.md, section 3).
enum class RangeMeaning : std::uint8_t {
  kNothing,    ///< no evidence by itself
  kOwner,      ///< owns everything inside, but garbage collection
  kWeak,       ///< owns launches and silence inside; a labelled call keeps its own label
  kIteration,
};

/// Whether the end of a data-loading range is the caller's own work or the arrival of a batch.
enum class BatchMode : std::uint8_t {
  kInline,  ///< this thread makes the batch: host time like any other
  kWait,    ///< workers make it: a late batch arrives when it arrives, whatever the caller does
};

struct RangeLabel {
  RangeMeaning meaning = RangeMeaning::kNothing;
  Cause cause = Cause::kUnknown;
  SubCause sub_cause = SubCause::kNone;
  BatchMode mode = BatchMode::kInline;
  MarkSource mark = MarkSource::kPattern;  ///< of an iteration
};

/// What a sub-cause of data loading says about who makes the batch.
constexpr BatchMode batch_mode_of(SubCause sub_cause) {
  return sub_cause == SubCause::kTooFewWorkers || sub_cause == SubCause::kWorkersCpuBound ||
                 sub_cause == SubCause::kWorkerStart || sub_cause == SubCause::kIoWait
             ? BatchMode::kWait
             : BatchMode::kInline;
}

/// Looks names up by rule: the user's rules first, in their order, then the built-in ones. Each
/// distinct NameId runs through the regular expressions once. A generic loading range (`data_loading`,
/// `next_batch`) is taken as inline: nothing in such a name says that somebody else makes the batch.
/// `wait_for_batch` and the like do, and a rule `regex=data_loading:wait` can.
class RangeTable {
 public:
  /// `rules` as in EngineOptions::range_rules; a rule that cannot be read is left out and listed in
  /// `errors()`. An empty `iteration_pattern` stands for the built-in one.
  RangeTable(const std::vector<std::string>& rules, const std::string& iteration_pattern,
             const NameTable& names);

  /// What a kRange record means; a cause that the record carries beats the table. A wait for a batch in
  /// which the thread is known not to have blocked is no wait: the batch was ready.
  RangeLabel label_of(const Record& range);
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  struct Rule {
    std::regex pattern;
    RangeLabel label;
  };
  void add(std::string_view pattern, RangeLabel label, const char* kind = "range rule ");
  void add_built_in(const char* pattern, RangeLabel label);
  void add_user_rule(const std::string& rule);
  RangeLabel said_or_named(const Record& range);
  RangeLabel named(NameId name);
  RangeLabel look_up(std::string_view name) const;

  const NameTable& names_;
  std::vector<Rule> rules_;
  std::vector<std::optional<RangeLabel>> cache_;
  std::vector<std::string> errors_;
};

/// The number behind the last `#` or at the end of a name such as `ProfilerStep#12`.
std::optional<std::uint64_t> number_in(std::string_view name);

}  // namespace gpudiag
