// SPDX-License-Identifier: Apache-2.0
//
// The things of the simulation: devices, contexts, streams, events, allocations. Plain data; the
// rules by which they change are in engine.cpp (time), memory.cpp and capture.cpp. Everything
// here is guarded by the engine's lock unless said otherwise, and is never destroyed: a handle
// used after its destruction is recognised by its `magic`.
#pragma once

#include <array>
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "listener.hpp"
#include "operation.hpp"

namespace simgpu {

struct Context;
struct Capture;
struct GraphNode;

// A copy engine moves one thing at a time; what is free in between may be used by a later call.
struct CopyEngine {
  struct Busy {
    std::int64_t start_ns;
    std::int64_t end_ns;
  };
  std::vector<Busy> busy;  // in order of start; what lies in the past is dropped

  // Books the first free stretch of `duration_ns` at or after `earliest_ns`; returns its start.
  std::int64_t book(std::int64_t earliest_ns, std::int64_t duration_ns, std::int64_t now_ns);
};

struct Device {
  std::uint32_t id = 0;
  DeviceDescription description{};
  Context* primary = nullptr;
  std::array<CopyEngine, 3> copy_engines;  // host→device, device→host, peer
  std::uint64_t used_bytes = 0;
  std::uint64_t used_high_bytes = 0;
  int sticky_error = 0;  // cudaError_t; a device stays broken once a kernel has failed on it
  std::int64_t busy_ns = 0;
  std::int64_t busy_until_ns = 0;
  std::set<std::uint32_t> peers;  // devices it may access
  unsigned flags = 0;             // cudaSetDeviceFlags
};

enum class StreamKind : std::uint8_t { legacy, blocking, non_blocking, graph_lane };

constexpr std::uint32_t kStreamMagic = 0x53545245;
constexpr std::uint32_t kContextMagic = 0x43545854;
constexpr std::uint32_t kEventMagic = 0x45564e54;

struct Stream {
  std::uint32_t magic = kStreamMagic;
  std::uint32_t id = 0;
  Context* context = nullptr;
  StreamKind kind = StreamKind::blocking;
  int priority = 0;
  bool per_thread = false;

  Operation* head = nullptr;  // oldest not yet retired
  Operation* tail = nullptr;
  Operation* last = nullptr;  // newest ever queued, referenced; null before the first
  std::uint32_t depth = 0;    // operations in the queue
  std::uint32_t unresolved = 0;
  std::int64_t tail_end_ns = 0;  // end of the newest resolved operation
  bool listed = false;           // in the engine's list of streams with work

  Capture* capture = nullptr;             // while it records a graph
  std::vector<GraphNode*> capture_front;  // what the next captured node depends on
  std::vector<std::uint64_t> edges;       // waits since the last operation, for the truth
};

struct Context {
  std::uint32_t magic = kContextMagic;
  std::uint32_t uid = 0;
  Device* device = nullptr;
  bool primary = false;
  bool active = false;
  Stream legacy;
  std::vector<Stream*> blocking;  // explicit and per-thread ones that heed the legacy stream
  std::vector<Stream*> streams;   // all but the legacy one and the graph lanes
  std::vector<Stream*> lanes;     // where parallel branches of graphs run
  std::uint32_t next_stream_id = 13;  // as CUPTI numbers them, the legacy stream being 7
};

struct Event {
  std::uint32_t magic = kEventMagic;
  std::uint32_t id = 0;
  unsigned flags = 0;
  Context* context = nullptr;
  Operation* record = nullptr;  // last cudaEventRecord, referenced; null before the first
  std::uint64_t sync_id = 0;
  Stream* stream = nullptr;     // of the last record
  Capture* capture = nullptr;   // last recorded inside this capture
  std::vector<GraphNode*> capture_front;
};

}  // namespace simgpu
