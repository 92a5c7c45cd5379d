// SPDX-License-Identifier: Apache-2.0
//
// What can be given to a stream or put into a graph: kernels, copies, fills, host functions,
// events. The API handlers build a Work and submit it; a capturing stream records it instead.
//
// handler → **Work** → submit() → engine, or → capture → graph node → graph launch → engine
//
// Results are cudaError_t throughout. Nothing here is called with the engine's lock held unless
// marked [locked].
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels.hpp"
#include "model.hpp"
#include "thread_state.hpp"

namespace simgpu {

struct KernelWork {
  Kernel* kernel = nullptr;
  Dimensions grid;
  Dimensions block;
  Dimensions cluster{0, 0, 0};
  std::uint32_t shared_bytes = 0;
  bool cooperative = false;
  // Fixed when the launch is made or captured: argument values do not outlive the call.
  std::int64_t duration_ns = 0;
  void** arguments = nullptr;
  void* remote_plan = nullptr;  // likewise; see remote.hpp
};

struct CopyWork {
  void* dst = nullptr;
  const void* src = nullptr;
  std::size_t width = 0;  // bytes of a row
  std::size_t height = 1;
  std::size_t dst_pitch = 0;
  std::size_t src_pitch = 0;
  CopyKind kind = CopyKind::unknown;
  MemoryKind src_memory = MemoryKind::unknown;
  MemoryKind dst_memory = MemoryKind::unknown;
  std::uint32_t src_device = 0;
  std::uint32_t dst_device = 0;
  bool is_async = true;
  std::size_t bytes() const { return width * height; }
};

struct FillWork {
  void* dst = nullptr;
  std::size_t width = 0;  // bytes of a row
  std::size_t height = 1;
  std::size_t pitch = 0;
  std::uint32_t value = 0;
  std::uint8_t value_bytes = 1;
  MemoryKind memory = MemoryKind::device;
  bool is_async = true;
};

struct HostWork {
  HostFunction function = nullptr;
  StreamCallback callback = nullptr;  // the old form; excludes `function`
  void* data = nullptr;
};

struct EventRecordWork {
  Event* event = nullptr;
};
struct EventWaitWork {
  Event* event = nullptr;
};
struct ChildWork {
  struct Graph* graph = nullptr;
};
struct EmptyWork {};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, EventRecordWork,
                          EventWaitWork, ChildWork>;

// Checks a launch and fixes its duration. cudaErrorInvalidConfiguration and the like, or 0.
int prepare_kernel(KernelWork& work);
// Finds out between which memories a copy goes; `kind` is a cudaMemcpyKind to hold it against.
int prepare_copy(CopyWork& work, int kind);
int prepare_fill(FillWork& work);

// Queues the work, or records it if the stream is being captured. Blocks where CUDA blocks: on a
// full queue, and for copies as README.md describes under "Copies that block".
int submit(Stream& stream, const Work& work);

// [locked] An operation that does the work, ready to be enqueued.
Operation* make_operation(Stream& stream, const Work& work, std::uint32_t correlation_id);

// The stream behind a handle of the calling thread; null for an invalid one.
Stream* find_stream(void* handle);

}  // namespace simgpu
