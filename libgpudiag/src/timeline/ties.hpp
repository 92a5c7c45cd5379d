// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// Who belongs together: threads that take turns on a stream are one line; lines whose streams wait
// for each other are one chain (attribution.md, section 1).
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/store.hpp"

namespace gpudiag {

/// Threads, streams and devices by dense index. A *line* is a set of threads that launch on common
/// streams: they must take turns (autograd's thread and the main one), so their host time is one
/// sequence. A stream that the line's operations wait for brings the line that launches on it into
/// the *chain*, but the other way round a line that waits for us is none of our business (a
/// checkpoint in the background).
class Ties {
 public:
  Index thread_of(ThreadId id);
  Index device_of(DeviceId id);
  Index stream_of(DeviceId device, ContextId context, StreamId stream);

  std::size_t threads() const { return thread_ids_.size(); }
  std::size_t devices() const { return device_ids_.size(); }
  std::size_t streams() const { return streams_.size(); }
  ThreadId thread_id(Index thread) const { return thread_ids_[thread]; }
  DeviceId device_id(Index device) const { return device_ids_[device]; }
  Index stream_device(Index stream) const { return streams_[stream].device; }

  /// `thread` launched `operation_ns` of work on `stream`; compute counts for who leads the device.
  void launched(Index thread, Index stream, std::int64_t operation_ns, bool compute);
  /// An operation on `stream`, or its line's host, waits for something on `awaited`.
  void waits_for(Index stream, Index awaited);
  void host_waits_for(Index thread, Index awaited);
  /// `thread` marks the loop that `device` follows.
  void marks(Index thread, Index device);

  /// The line of a thread, named by one of its threads.
  Index line_of(Index thread) const;
  /// Line that launches on the stream, kNone where no launch was seen.
  Index line_of_stream(Index stream) const;
  /// The line with the most compute on the device; where none has any, with the most operations.
  Index leader_of(Index device) const;
  bool has_compute(Index line) const;
  bool in_chain(Index device, Index stream);
  bool line_in_chain(Index device, Index line);
  /// Look at the loads again: who leads a device may have changed.
  void refresh() { stale_ = true; }
  /// Grows whenever two lines become one.
  std::uint64_t merges() const { return merges_; }

 private:
  struct Stream {
    DeviceId device_id{};
    ContextId context{};
    StreamId id{};
    Index device = kNone;
    Index launcher = kNone;
    std::vector<Index> awaited{};
  };
  struct Load {
    Index thread;
    Index device;
    std::int64_t compute_ns;
    std::int64_t operations;
  };
  void unite(Index a, Index b);
  void rebuild_chains();

  std::vector<ThreadId> thread_ids_;
  std::vector<DeviceId> device_ids_;
  std::vector<Stream> streams_;
  std::vector<Index> parent_;
  std::vector<Load> loads_;
  std::vector<std::vector<Index>> host_awaits_;  ///< by thread
  std::vector<std::vector<bool>> chain_;  ///< by device, by stream
  std::vector<std::vector<bool>> chain_lines_;  ///< by device, by line
  std::uint64_t merges_ = 0;
  Index last_thread_ = kNone, last_stream_ = kNone, last_load_ = kNone;
  bool stale_ = true;
};

}  // namespace gpudiag
