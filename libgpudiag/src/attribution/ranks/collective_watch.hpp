// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Picks the collectives out of the records that pass on their way to the engine, and hands them over
// window by window. Stands beside the engine, which knows nothing of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "attribution/ranks/rank_summary.hpp"
#include "record/names.hpp"
#include "record/sink.hpp"
#include "timeline/communication_kernel.hpp"

namespace gpudiag {

/// Not thread-safe. Memory: the communication and the busy stretches of what no window has taken yet.
class CollectiveWatch final : public RecordSink {
 public:
  /// `names` must outlive it and hold every NameId of the records.
  explicit CollectiveWatch(const NameTable& names, const std::vector<std::string>& rules = {});

  void add(const Record& record) override;
  /// The operations on `device` that began before the window's end and have not been taken, by
  /// arrival; `about` counts in abouts(). Give the windows in order, each once.
  std::vector<CollectiveUse> take(DeviceId device, Interval window);
  const std::vector<CollectiveInfo>& abouts() const { return abouts_; }

 private:
  struct Lane {
    std::vector<CollectiveUse> waiting;
    std::vector<Interval> compute;
    std::map<std::pair<ContextId, StreamId>, std::uint32_t> streams;  ///< that communicate, as they appear
  };
  std::uint32_t about_of(const Record& record, Lane& lane);
  std::uint32_t intern(const CollectiveInfo& info);
  const std::optional<CollectiveInfo>& kernel_info(NameId name);
  static void trim(Lane& lane, TimePoint until);

  const NameTable& names_;
  CommunicationTable table_;
  std::vector<CollectiveInfo> abouts_;
  std::unordered_map<std::string, std::uint32_t> about_ids_;
  std::map<std::tuple<NameId, NameId, std::uint64_t, std::uint32_t>, std::uint32_t> known_;
  struct Known {
    std::string name;  ///< ids may be given to another text
    std::optional<CollectiveInfo> info;
  };
  std::unordered_map<std::uint32_t, Known> kernels_;
  std::map<DeviceId, Lane> lanes_;
};

}  // namespace gpudiag
