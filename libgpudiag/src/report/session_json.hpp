// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// The lines of `gpudiag.session/1`, which stand between the iterations in a run's JSONL: who writes,
// what happened on the way, how it ended. A file without an end line was written by a job that died.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/time.hpp"
#include "record/ids.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

inline constexpr std::string_view kSessionSchema = "gpudiag.session/1";

struct DeviceInfo {
  DeviceId device{};
  std::string name;  ///< "NVIDIA H100 80GB HBM3"; may be empty

  bool operator==(const DeviceInfo&) const = default;
};

/// What is known when a session begins.
struct SessionInfo {
  std::int64_t origin_unix_ns = 0;  ///< the session clock's origin
  std::uint32_t rank = 0;
  std::string host;
  std::uint64_t pid = 0;
  std::string source;               ///< "live", or the file it was read from
  std::string version;              ///< of gpudiag
  bool torch = false;               ///< PyTorch runs in the process: advice may use its names
  std::vector<DeviceInfo> devices;  ///< as far as known
  std::vector<std::pair<std::string, std::string>> options;  ///< what was set, by its variable's name
};

/// Something that happened once and changes how the rest is to be read, such as
/// {"callbacks_off", "callbacks off: 39"}.
struct SessionNote {
  TimePoint at;
  std::string code;  ///< snake_case, for programs
  std::string text;  ///< for people

  bool operator==(const SessionNote&) const = default;
};

/// How a session ended.
struct SessionEnd {
  TimePoint at;
  std::uint64_t iterations = 0;  ///< written, over all devices
  Quality quality;
  DurationNs own;                ///< spent in our own code on the job's threads
  DurationNs own_drain;          ///< processor time of our own thread
};

/// Each one line without its end.
std::string session_start_json(const SessionInfo& info);
std::string session_device_json(std::uint32_t rank, const DeviceInfo& device);
std::string session_note_json(std::uint32_t rank, const SessionNote& note);
/// The state of the records so far; written now and then, so that a killed job's quality is known.
std::string session_quality_json(std::uint32_t rank, TimePoint at, const Quality& quality);
std::string session_end_json(std::uint32_t rank, const SessionEnd& end);

}  // namespace gpudiag
