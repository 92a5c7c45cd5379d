// SPDX-License-Identifier: Apache-2.0
#include "sources/recorded/record_order.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "sources/sanitizer.hpp"

namespace gpudiag::recorded {
namespace {

constexpr DurationNs kDay = seconds(86'400);
constexpr std::size_t kSample = 4096;

bool on_host(const Record& record) {
  return record.kind == RecordKind::kApiCall || record.kind == RecordKind::kRange;
}

std::int64_t saturated(__int128 value) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (value > Limits::max()) return Limits::max();
  if (value < Limits::min()) return Limits::min();
  return static_cast<std::int64_t>(value);
}

TimePoint moved(TimePoint time, TimePoint origin) {
  return {saturated(__int128{time.ns} - origin.ns)};
}

Interval widened(Interval interval, std::int64_t by) {
  return {{saturated(__int128{interval.start.ns} - by)},
          {saturated(__int128{interval.end.ns} + by)}};
}

using Key = std::pair<std::uint32_t, std::uint32_t>;  ///< process, correlation

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return std::hash<std::uint64_t>{}(std::uint64_t{key.first} << 32 | key.second);
  }
};

/// Which process launches on which device, voted for by correlation ids that only one process uses.
class DeviceOwners {
 public:
  DeviceOwners(const RecordStore& records, ProcessId main) : main_{main} {
    constexpr std::uint32_t kShared = 0xffffffffu;
    std::unordered_map<std::uint32_t, std::uint32_t> callers;
    records.for_each([&](const Record& record) {
      if (record.kind != RecordKind::kApiCall || record.correlation == kNoCorrelation) return;
      const auto [found, added] = callers.try_emplace(raw(record.correlation), raw(record.process));
      if (!added && found->second != raw(record.process)) found->second = kShared;
    });
    std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>> votes;
    records.for_each([&](const Record& record) {
      if (!record.is_operation()) return;
      const auto caller = callers.find(raw(record.correlation));
      if (caller == callers.end() || caller->second == kShared) return;
      ++votes[raw(record.device)][caller->second];
    });
    for (const auto& [device, by_process] : votes) {
      const auto most =
          std::ranges::max_element(by_process, {}, [](const auto& vote) { return vote.second; });
      owners_.emplace(device, ProcessId{most->first});
    }
  }

  ProcessId of(DeviceId device) const {
    const auto found = owners_.find(raw(device));
    return found == owners_.end() ? main_ : found->second;
  }

 private:
  ProcessId main_;
  std::map<std::uint32_t, ProcessId> owners_;
};

/// Ends of the calls that launched the records whose own time says nothing.
std::unordered_map<Key, TimePoint, KeyHash> launch_ends(const RecordStore& records,
                                                        Interval session) {
  std::unordered_map<Key, TimePoint, KeyHash> ends;
  records.for_each([&](const Record& record) {
    if (!on_host(record) && record.correlation != kNoCorrelation &&
        defects_of(record, session) != 0) {
      ends.emplace(Key{raw(record.process), raw(record.correlation)}, kTimeMin);
    }
  });
  if (ends.empty()) return ends;
  records.for_each([&](const Record& record) {
    if (record.kind != RecordKind::kApiCall) return;
    const auto found = ends.find({raw(record.process), raw(record.correlation)});
    if (found != ends.end()) found->second = record.end;
  });
  return ends;
}

}  // namespace

std::vector<RecordedProcess> assign_processes(RecordStore& records,
                                            const std::vector<std::int64_t>& pids) {
  std::vector<RecordedProcess> processes(std::max<std::size_t>(pids.size(), 1));
  for (std::size_t i = 0; i < processes.size(); ++i) {
    processes[i].id = ProcessId{static_cast<std::uint32_t>(i)};
    if (i < pids.size()) processes[i].pid = pids[i];
  }
  records.for_each([&](const Record& record) {
    if (record.kind == RecordKind::kApiCall) ++processes[raw(record.process)].api_calls;
    if (record.kind == RecordKind::kRange) ++processes[raw(record.process)].ranges;
  });
  const auto more = [](const RecordedProcess& a, const RecordedProcess& b) {
    return std::pair{a.api_calls, a.ranges} < std::pair{b.api_calls, b.ranges};
  };
  const ProcessId main = std::ranges::max_element(processes, more)->id;
  const auto callers = std::ranges::count_if(
      processes, [](const RecordedProcess& process) { return process.api_calls > 0; });
  // With one caller of CUDA there is nothing to find out, and finding out takes memory.
  const auto owners = callers > 1 ? DeviceOwners{records, main} : DeviceOwners{RecordStore{}, main};
  records.for_each([&](Record& record) {
    if (record.process == kDeviceProcess) record.process = owners.of(record.device);
    if (record.is_operation()) ++processes[raw(record.process)].operations;
  });
  std::ranges::sort(processes, {}, [main](const RecordedProcess& process) {
    return std::pair{process.id != main, process.pid};
  });
  return processes;
}

Interval find_session(const RecordStore& records) {
  bool hosts = false;
  records.for_each([&](const Record& record) { hosts = hosts || on_host(record); });
  const auto counts = [hosts](const Record& record) {
    return on_host(record) == hosts && !record.has(record_flag::kUntimed);
  };
  std::vector<TimePoint> sample;
  const std::size_t stride = records.size() / kSample + 1;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if ((i % stride == 0 || sample.empty()) && counts(records[i]))
      sample.push_back(records[i].start);
  }
  if (sample.empty()) return {kTimeMin, kTimeMax};
  const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  std::ranges::nth_element(sample, middle);
  const Interval near = widened({*middle, *middle}, kDay.ns);
  Interval hull{*middle, *middle};
  records.for_each([&](const Record& record) {
    if (!counts(record) || record.start < near.start || record.end > near.end) return;
    hull.start = std::min(hull.start, record.start);
    hull.end = std::max(hull.end, record.end);
  });
  return widened(hull, std::max(seconds(1), hull.length()).ns);
}

TimePoint find_origin(const RecordStore& records, Interval session) {
  TimePoint origin = kTimeMax;
  records.for_each([&](const Record& record) {
    if (defects_of(record, session) == 0) origin = std::min(origin, record.start);
  });
  return origin == kTimeMax ? TimePoint{} : origin;
}

Interval relative_to(Interval interval, TimePoint origin) {
  return {moved(interval.start, origin), moved(interval.end, origin)};
}

std::vector<Delivery> order_records(RecordStore& records, TimePoint origin, Interval session) {
  const auto launches = launch_ends(records, session);
  std::vector<Delivery> order;
  order.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    Record& record = records[i];
    const std::uint16_t defects = defects_of(record, session);
    TimePoint at = std::clamp(record.end, session.start, session.end);
    if (defects != 0) {
      const auto launch = launches.find({raw(record.process), raw(record.correlation)});
      if (launch != launches.end() && launch->second != kTimeMin) at = launch->second;
      if ((defects & record_flag::kUntimed) != 0) {
        at = std::max(at, origin);
        record.start = record.end = at;
      }
    }
    record.start = moved(record.start, origin);
    record.end = moved(record.end, origin);
    order.push_back({moved(at, origin), static_cast<std::uint32_t>(i)});
  }
  std::ranges::sort(order, {}, [](const Delivery& d) { return std::pair{d.at, d.index}; });
  return order;
}

}  // namespace gpudiag::recorded
