// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources] -> record -> timeline -> attribution -> report.
// What every reader of a file makes of it: all its records, and what the file says of itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/names.hpp"
#include "record/sink.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

struct ReadOptions {
  /// Called now and then, on the caller's thread, with how much of the file has been read and how
  /// much there is, in bytes. Must not throw.
  std::function<void(std::uint64_t read, std::uint64_t total)> on_progress;
};

struct RecordedDevice {
  DeviceId id{};
  std::string name;
  std::optional<ProcessId> process;  ///< whose device of this number it is; none: everybody's
};

/// A process of the host that the trace tells of.
struct RecordedProcess {
  ProcessId id{};
  std::int64_t pid = 0;
  std::uint64_t api_calls = 0;
  std::uint64_t ranges = 0;
  std::uint64_t operations = 0;
  std::optional<std::uint32_t> rank;  ///< where the trace tells it for the process
};

/// What the trace says of itself; absent where it does not.
struct RecordedInfo {
  std::string origin_unix_ns;  ///< time 0 of the records, in ns since 1970 where the trace knows it
  std::optional<std::uint32_t> rank;  ///< of the file's main process
  std::optional<std::uint32_t> world_size;
  std::string backend;  ///< of the collectives: "nccl"
  std::string trace_name;
  std::string host;
  bool torch = false;  ///< the job is known to have run PyTorch
  std::vector<RecordedDevice> devices;
  std::vector<std::string> unknown;  ///< a sentence for each thing that the file lacks and what follows
  std::uint64_t events = 0;          ///< in the file, of all kinds
  std::uint64_t json_bytes = 0;      ///< of text, uncompressed
  std::uint64_t file_bytes = 0;
};

namespace recorded {
struct Contents;
}

/// All records of one file. Operations belong to the process that launched them, as far as the file
/// tells; processes without any (workers of a loader) have host records only. Immutable: may be used
/// from several threads.
class RecordedTrace {
 public:
  explicit RecordedTrace(std::unique_ptr<recorded::Contents> contents);
  RecordedTrace(RecordedTrace&&) noexcept;
  RecordedTrace& operator=(RecordedTrace&&) noexcept;
  ~RecordedTrace();

  /// Of all records; the engine's table.
  const NameTable& names() const;
  const RecordedInfo& info() const;
  /// The main process first, which is the one with most CUDA calls. Never empty.
  const std::vector<RecordedProcess>& processes() const;
  /// Defects of the file itself: broken_event, repaired_text, truncated. To be added to what the
  /// engine counts.
  const Quality& quality() const;

  /// Hands one process's records over as a live source would: in the order in which they ended,
  /// each through the Sanitizer, with a tick every 200 ms of the trace's time.
  void deliver(ProcessId process, RecordSink& sink) const;

 private:
  std::unique_ptr<recorded::Contents> contents_;
};

}  // namespace gpudiag
