// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record -> timeline -> attribution -> report.
// The door of this folder: a trace that torch.profiler (Kineto) wrote, as records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/names.hpp"
#include "record/result.hpp"
#include "record/sink.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

struct KinetoReadOptions {
  /// Called now and then, on the caller's thread, with bytes of the file read so far and in all. Must
  /// not throw.
  std::function<void(std::uint64_t read, std::uint64_t total)> on_progress;
};

struct KinetoDevice {
  DeviceId id{};
  std::string name;
};

/// A process of the host that the trace tells of.
struct KinetoProcess {
  ProcessId id{};
  std::int64_t pid = 0;
  std::uint64_t api_calls = 0;
  std::uint64_t ranges = 0;
  std::uint64_t operations = 0;
};

/// What the trace says of itself; absent where it does not.
struct KinetoInfo {
  std::string origin_unix_ns;  ///< time 0 of the records, in ns since 1970 where the trace knows it
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> world_size;
  std::string backend;  ///< of the collectives: "nccl"
  std::string trace_name;
  std::vector<KinetoDevice> devices;
  std::uint64_t events = 0;  ///< in the file, of all kinds
  std::uint64_t json_bytes = 0;
  std::uint64_t file_bytes = 0;
};

/// All records of one file. A file is one rank: operations on its devices belong to its main
/// process, the one with most CUDA calls; others (workers of a loader, in files merged afterwards)
/// have host records only. Where several processes call CUDA (files of several ranks merged), an
/// operation goes to the process that launched on its device, as far as unambiguous correlation ids
/// tell. Immutable once read: may be used from several threads.
class KinetoTrace {
 public:
  /// Reads a whole file, plain or gzip, with one thread more than the caller's. Fails where it
  /// cannot be opened or is no trace at all; whatever else is wrong with it is counted in
  /// quality().
  static Result<KinetoTrace> read(const std::filesystem::path& path,
                                  const KinetoReadOptions& options = {});

  KinetoTrace(KinetoTrace&&) noexcept;
  KinetoTrace& operator=(KinetoTrace&&) noexcept;
  ~KinetoTrace();

  /// Of all records; the engine's table.
  const NameTable& names() const;
  const KinetoInfo& info() const;
  /// The main process first, the others by their pid. Never empty.
  const std::vector<KinetoProcess>& processes() const;
  /// Defects of the file itself: broken_event, repaired_text, truncated. To be added to what the
  /// engine counts.
  const Quality& quality() const;

  /// Hands one process's records over as a live source would: in the order in which they ended,
  /// each through the Sanitizer, with a tick every 200 ms of the trace's time.
  void deliver(ProcessId process, RecordSink& sink) const;

 private:
  struct Contents;
  explicit KinetoTrace(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

}  // namespace gpudiag
