// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// The summaries of a live session in files of their own beside its JSON lines, one for each device, for
// the comparison with the other ranks (attribution/ranks/summary_file.hpp).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "attribution/ranks/summary_file.hpp"
#include "session/appender.hpp"

namespace gpudiag {

/// Where a device sits; empty and -1 where nobody says.
struct DevicePlace {
  std::string name;
  std::string pci;  ///< "0000:3b:00.0"
  std::int32_t numa_node = -1;
};

/// Asks the driver, where one is loaded, and sysfs.
DevicePlace place_of(DeviceId device);

/// The drain thread's.
class RankFiles {
 public:
  using Place = std::function<DevicePlace(DeviceId)>;

  RankFiles(RankIdentity who, Place place) : who_{std::move(who)}, place_{std::move(place)} {}

  void add(const IterationLedger& ledger, std::span<const CollectiveUse> uses, std::span<const CollectiveInfo> abouts);
  /// Writes what waits to `stem` + ".ranks", or ".dev<N>.ranks" for a further device; an empty stem: no
  /// file can be written yet. Of what cannot be written at all the reason, once.
  std::string flush(const std::string& stem);
  /// The session ended in order.
  void finish();

 private:
  struct OfDevice {
    std::unique_ptr<SummaryWriter> writer;
    std::string waiting;
    AppendFile file;
    bool failed = false;
  };
  OfDevice& of(DeviceId device);

  RankIdentity who_;
  Place place_;
  std::map<DeviceId, std::unique_ptr<OfDevice>> devices_;
  DeviceId first_{};
};

}  // namespace gpudiag
