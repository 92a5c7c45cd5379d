// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/unfinished_launches.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace gpudiag::nsys_file {
namespace {

/// Processes and correlation ids of all operations.
class Launched {
 public:
  explicit Launched(const recorded::RecordStore& records) {
    records.for_each([&](const Record& record) {
      if (record.is_operation()) keys_.push_back(key(record));
    });
    std::ranges::sort(keys_);
  }
  bool by(const Record& call) const { return std::ranges::binary_search(keys_, key(call)); }

 private:
  static std::uint64_t key(const Record& record) {
    return std::uint64_t{raw(record.process)} << 32 | raw(record.correlation);
  }
  std::vector<std::uint64_t> keys_;
};

bool is_launch(const Record& record) {
  return record.kind == RecordKind::kApiCall &&
         (record.api == ApiClass::kLaunch || record.api == ApiClass::kGraphLaunch);
}

}  // namespace

std::uint64_t settle_unfinished_launches(recorded::RecordStore& records) {
  const Launched launched{records};
  // Start of the last launch with an operation, by thread and by process.
  std::map<std::pair<ProcessId, ThreadId>, TimePoint> last_of_thread;
  std::map<ProcessId, TimePoint> last_of_process;
  records.for_each([&](const Record& record) {
    if (!is_launch(record) || !launched.by(record)) return;
    TimePoint& of_thread = last_of_thread.try_emplace({record.process, record.thread}, kTimeMin).first->second;
    of_thread = std::max(of_thread, record.start);
    TimePoint& of_process = last_of_process.try_emplace(record.process, kTimeMin).first->second;
    of_process = std::max(of_process, record.start);
  });
  std::uint64_t settled = 0;
  records.for_each([&](Record& record) {
    if (!is_launch(record) || record.has(record_flag::kFailed)) return;
    const auto process = last_of_process.find(record.process);
    if (process == last_of_process.end()) return;  // no operation at all: it was not recorded
    const auto thread = last_of_thread.find({record.process, record.thread});
    const TimePoint last = thread == last_of_thread.end() ? process->second : thread->second;
    if (record.start <= last) return;
    record.api = ApiClass::kOther;
    ++settled;
  });
  return settled;
}

}  // namespace gpudiag::nsys_file
