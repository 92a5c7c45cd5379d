// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// Cuts a trace's text into single events, so that each is parsed alone: a broken one costs itself,
// and everything before a truncation is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpudiag::kineto_file {

/// An event within the text it was cut from.
struct Cut {
  std::size_t offset;
  std::size_t length;
};

/// Takes `[event, …]` and `{"traceEvents": [event, …], "other": value, …}`.
class EventCutter {
 public:
  /// Cuts what is complete in `text`, behind which kScanPadding bytes must be readable, and returns
  /// how much of it is done with; the rest must begin the next call's text. `last`: nothing
  /// follows.
  std::size_t cut(std::string_view text, bool last, std::vector<Cut>& events);

  /// What stands beside the events: key and value as written. Only values below 1 MiB are kept.
  const std::vector<std::pair<std::string, std::string>>& members() const { return members_; }
  std::uint64_t broken() const { return broken_; }
  bool truncated() const { return truncated_; }
  /// The text began as a trace does; decided once some of it is not white space.
  bool is_trace() const { return where_ != Where::kStart && where_ != Where::kNoTrace; }
  bool found_events() const { return found_events_; }

 private:
  enum class Where { kStart, kMembers, kEvents, kResync, kDone, kNoTrace };

  /// Each moves `at_` on, and returns false where it needs more text or nothing is left to do.
  bool step_start();
  bool step_member();
  bool step_event();
  bool step_object();
  bool step_array_end();
  bool step_resync();
  void skip_white(std::string_view also);
  bool starts_event(const char* at) const;
  bool ends_events(const char* at) const;
  void keep_member(std::string_view key, std::string_view value);

  Where where_ = Where::kStart;
  bool bare_array_ = false;
  bool found_events_ = false;
  bool truncated_ = false;
  std::uint64_t broken_ = 0;
  std::vector<std::pair<std::string, std::string>> members_;

  // Of the call in progress.
  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool last_ = false;
  std::vector<Cut>* events_ = nullptr;
};

}  // namespace gpudiag::kineto_file
