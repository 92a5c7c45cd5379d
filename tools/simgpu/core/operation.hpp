// SPDX-License-Identifier: Apache-2.0
//
// One operation of the simulated GPU, from the call that queues it to its delivery.
//
// API call → **Operation** in a Stream's queue → retired when its end has come → delivered
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "listener.hpp"

namespace simgpu {

struct Stream;
struct Graph;
struct RemoteKernel;

// What an operation does to memory when it ends. Kernels do nothing: the simulation does no maths.
struct Effect {
  enum class Type : std::uint8_t { none, copy, fill, release };
  Type type = Type::none;
  std::uint8_t value_bytes = 1;  // fill: width of the pattern
  std::uint32_t value = 0;       // fill
  void* dst = nullptr;           // release: the allocation to free
  const void* src = nullptr;
  std::size_t width = 0;   // bytes of a row
  std::size_t height = 1;  // rows
  std::size_t dst_pitch = 0;
  std::size_t src_pitch = 0;
};

using HostFunction = void (*)(void* data);
using StreamCallback = void (*)(Stream* stream, int status, void* data);

struct Operation {
  OperationRecord record{};  // its times are set when it is delivered; see below

  // Host clock. `end_ns` means something once `resolved`.
  std::int64_t queued_ns = 0;
  std::int64_t earliest_ns = 0;  // reaches the device; a start is never before it
  std::int64_t gate_ns = 0;      // latest end among what it waits for and is resolved
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t duration_ns = 0;

  Stream* stream = nullptr;
  Operation* next = nullptr;           // in its stream, then in the list of the finished
  Operation* stream_before = nullptr;  // unresolved predecessor in the stream, else null
  std::vector<Operation*> waits_for;   // unresolved ones only; referenced
  std::vector<std::uint64_t> edges;       // ids of all it waits for across streams, for the truth
  std::vector<std::uint64_t> past_edges;  // likewise, of what had ended when it was queued
  std::uint32_t references = 1;        // the queue's own; changed under the lock only
  bool resolved = false;               // start and end are known
  bool started = false;                // start is known; a host function may be running
  bool retired = false;
  bool never_ends = false;
  int error = 0;  // poisons the device when it ends

  const RemoteKernel* remote = nullptr;  // says when it ends; null for most
  void* remote_plan = nullptr;

  Operation* graph_begin = nullptr;  // of a graph_launch: its first entry; referenced

  Effect effect;
  std::unique_ptr<std::byte[]> staging;  // pageable source, as it was when the copy was queued
  HostFunction host_function = nullptr;
  StreamCallback stream_callback = nullptr;
  void* host_data = nullptr;
};

}  // namespace simgpu
