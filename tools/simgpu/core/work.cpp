// SPDX-License-Identifier: Apache-2.0
#include "work.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "engine.hpp"
#include "faults.hpp"
#include "graph.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "remote.hpp"
#include "truth.hpp"

namespace simgpu {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kInvalidConfiguration = 9;
constexpr int kInvalidDirection = 21;
constexpr int kInvalidHandle = 400;
constexpr int kLaunchFailure = 719;
constexpr std::uint64_t kMaxThreadsPerBlock = 1024;
// CUDA stages pageable copies up to this size at once and returns.
constexpr std::size_t kStagedBytes = 64 * 1024;

bool on_host(MemoryKind kind) {
  return kind == MemoryKind::pageable || kind == MemoryKind::pinned;
}

CopyClass copy_class(const CopyWork& work) {
  const bool pageable =
      work.src_memory == MemoryKind::pageable || work.dst_memory == MemoryKind::pageable;
  switch (work.kind) {
    case CopyKind::host_to_device:
      return pageable ? CopyClass::pageable : CopyClass::h2d;
    case CopyKind::device_to_host:
      return pageable ? CopyClass::pageable : CopyClass::d2h;
    case CopyKind::peer_to_peer:
      return CopyClass::p2p;
    case CopyKind::host_to_host:
      return CopyClass::h2h;
    default:
      return CopyClass::d2d;
  }
}

// Whether the call returns only when the copy has ended.
bool copy_blocks(const CopyWork& work) {
  switch (work.kind) {
    case CopyKind::host_to_host:
      return true;
    case CopyKind::host_to_device:
      if (work.src_memory == MemoryKind::pageable) return work.bytes() > kStagedBytes;
      return !work.is_async;
    case CopyKind::device_to_host:
      return work.dst_memory == MemoryKind::pageable || !work.is_async;
    default:
      return false;
  }
}

// Keeps the source of a staged copy as it is now: the caller may reuse it at once.
void stage(Operation& operation, const CopyWork& work) {
  const std::size_t bytes = work.bytes();
  operation.staging = std::make_unique<std::byte[]>(bytes);
  const auto* src = static_cast<const std::byte*>(work.src);
  for (std::size_t row = 0; row < work.height; ++row) {
    std::memcpy(operation.staging.get() + row * work.width, src + row * work.src_pitch, work.width);
  }
}

void strike(Operation& operation, const Kernel& kernel) {
  for (Fault* fault : kernel.faults) {
    if (!fault->fires(kernel.name)) continue;
    operation.never_ends = operation.never_ends || fault->has("never_ends");
    if (fault->has("error")) {
      operation.error = static_cast<int>(fault->number("error", kLaunchFailure));
    }
    operation.duration_ns += fault->number("delay_ns", 0);
    if (truth_enabled()) truth_fault(*fault, operation.record.id);
  }
}

Operation* make(Stream& stream, const KernelWork& work, std::uint32_t correlation_id) {
  static std::atomic<std::int64_t> grids{0};  // relaxed: a counter
  Operation* operation = Engine::get().create(OperationKind::kernel, stream, correlation_id);
  OperationRecord& r = operation->record;
  r.name = work.kernel->name.c_str();
  const auto signed_of = [](std::uint32_t value) { return static_cast<std::int32_t>(value); };
  r.grid[0] = signed_of(work.grid.x);
  r.grid[1] = signed_of(work.grid.y);
  r.grid[2] = signed_of(work.grid.z);
  r.block[0] = signed_of(work.block.x);
  r.block[1] = signed_of(work.block.y);
  r.block[2] = signed_of(work.block.z);
  r.cluster[0] = work.cluster.x;
  r.cluster[1] = work.cluster.y;
  r.cluster[2] = work.cluster.z;
  r.dynamic_shared_bytes = signed_of(work.shared_bytes);
  r.registers_per_thread = 32;
  r.grid_id = grids.fetch_add(1, std::memory_order_relaxed) + 1;
  r.launch_type = work.cooperative ? 1 : 0;
  operation->duration_ns = work.duration_ns;
  if (!work.kernel->faults.empty()) strike(*operation, *work.kernel);
  if (work.kernel->remote != nullptr) {
    operation->remote = work.kernel->remote;
    operation->remote_plan = work.remote_plan;
    // Without a rule or a fault nothing is asked for, though no kernel takes less than 1 ns.
    const std::int64_t extra_ns = operation->duration_ns > 1 ? operation->duration_ns : 0;
    if (!operation->never_ends) operation->remote->queued(work.remote_plan, operation, extra_ns);
  }
  return operation;
}

Operation* make(Stream& stream, const CopyWork& work, std::uint32_t correlation_id) {
  Operation* operation = Engine::get().create(OperationKind::memcpy, stream, correlation_id);
  OperationRecord& r = operation->record;
  r.bytes = work.bytes();
  r.copy_kind = work.kind;
  r.src_memory = work.src_memory;
  r.dst_memory = work.dst_memory;
  r.is_async = work.is_async;
  r.src_device = work.src_device;
  r.dst_device = work.dst_device;
  for (const Context* context : all_contexts()) {
    if (!context->primary) continue;
    if (context->device->id == work.src_device) r.src_context_uid = context->uid;
    if (context->device->id == work.dst_device) r.dst_context_uid = context->uid;
  }
  operation->duration_ns = copy_duration_ns(copy_class(work), work.bytes());
  operation->effect.type = Effect::Type::copy;
  operation->effect.dst = work.dst;
  operation->effect.src = work.src;
  operation->effect.width = work.width;
  operation->effect.height = work.height;
  operation->effect.dst_pitch = work.dst_pitch;
  operation->effect.src_pitch = work.src_pitch;
  return operation;
}

Operation* make(Stream& stream, const FillWork& work, std::uint32_t correlation_id) {
  Operation* operation = Engine::get().create(OperationKind::memset, stream, correlation_id);
  OperationRecord& r = operation->record;
  r.bytes = work.width * work.height;
  r.memset_value = work.value;
  r.dst_memory = work.memory;
  r.is_async = work.is_async;
  operation->duration_ns = copy_duration_ns(CopyClass::memset, r.bytes);
  operation->effect.type = Effect::Type::fill;
  operation->effect.value = work.value;
  operation->effect.value_bytes = work.value_bytes;
  operation->effect.dst = work.dst;
  operation->effect.width = work.width;
  operation->effect.height = work.height;
  operation->effect.dst_pitch = work.pitch;
  return operation;
}

Operation* make(Stream& stream, const HostWork& work, std::uint32_t correlation_id) {
  Operation* operation = Engine::get().create(OperationKind::host_function, stream, correlation_id);
  operation->host_function = work.function;
  operation->stream_callback = work.callback;
  operation->host_data = work.data;
  return operation;
}

Operation* make(Stream& stream, const EventRecordWork& work, std::uint32_t correlation_id) {
  static std::atomic<std::uint64_t> records{0};  // relaxed: a counter
  Engine& engine = Engine::get();
  Operation* operation = engine.create(OperationKind::event_record, stream, correlation_id);
  Event& event = *work.event;
  event.sync_id = records.fetch_add(1, std::memory_order_relaxed) + 1;
  event.stream = &stream;
  operation->record.event_id = event.id;
  operation->record.event_sync_id = event.sync_id;
  engine.release(event.record);
  event.record = operation;
  Engine::reference(operation);
  return operation;
}

Operation* make(Stream& stream, const EventWaitWork& work, std::uint32_t correlation_id) {
  Operation* operation = Engine::get().create(OperationKind::event_wait, stream, correlation_id);
  operation->record.event_id = work.event->id;
  operation->record.event_sync_id = work.event->sync_id;
  return operation;
}

Operation* make(Stream& stream, const EmptyWork&, std::uint32_t correlation_id) {
  return Engine::get().create(OperationKind::marker, stream, correlation_id);
}

Operation* make(Stream& stream, const ChildWork&, std::uint32_t correlation_id) {
  return Engine::get().create(OperationKind::marker, stream, correlation_id);
}

// What `work` waits for besides its place in the stream.
std::span<Operation* const> awaited(const Work& work) {
  const auto* wait = std::get_if<EventWaitWork>(&work);
  if (wait == nullptr || wait->event->record == nullptr) return {};
  return {&wait->event->record, 1};
}

bool work_blocks(const Work& work) {
  if (const auto* copy = std::get_if<CopyWork>(&work)) return copy_blocks(*copy);
  // A fill of pinned memory by the synchronous call; all others return at once.
  const auto* fill = std::get_if<FillWork>(&work);
  return fill != nullptr && !fill->is_async && fill->memory == MemoryKind::pinned;
}

}  // namespace

int prepare_kernel(KernelWork& work) {
  const std::uint64_t threads = work.block.count();
  if (work.grid.count() == 0 || threads == 0 || threads > kMaxThreadsPerBlock ||
      work.block.z > 64 || work.grid.y > 65535 || work.grid.z > 65535) {
    return kInvalidConfiguration;
  }
  if (work.shared_bytes > 227 * 1024) return kInvalidValue;
  prepare_costs(*work.kernel);
  work.duration_ns = kernel_duration_ns(work.kernel->cost, work.grid, work.block, work.arguments);
  if (work.kernel->remote != nullptr) {
    if (work.arguments == nullptr) return kInvalidValue;
    std::memcpy(&work.remote_plan, work.arguments[0], sizeof work.remote_plan);
  }
  return 0;
}

int prepare_copy(CopyWork& work, int kind) {
  if (work.bytes() != 0 && (work.dst == nullptr || work.src == nullptr)) return kInvalidValue;
  if (kind < 0 || kind > 4) return kInvalidDirection;
  const ThreadState& thread = thread_state();
  const Lock guard = Engine::get().lock();
  const Allocation* from = find_allocation(work.src);
  const Allocation* to = find_allocation(work.dst);
  work.src_memory = from == nullptr ? MemoryKind::pageable : from->kind;
  work.dst_memory = to == nullptr ? MemoryKind::pageable : to->kind;
  const std::uint32_t here =
      thread.contexts.empty() ? thread.device : thread.contexts.back()->device->id;
  work.src_device = from == nullptr || on_host(from->kind) ? here : from->device;
  work.dst_device = to == nullptr || on_host(to->kind) ? here : to->device;
  // Managed memory is on either side; the kind says which.
  const bool from_host = on_host(work.src_memory) ||
                         (work.src_memory == MemoryKind::managed && (kind == 0 || kind == 1));
  const bool to_host = on_host(work.dst_memory) ||
                       (work.dst_memory == MemoryKind::managed && (kind == 0 || kind == 2));
  const bool wants_host_source = kind == 0 || kind == 1;
  const bool wants_host_target = kind == 0 || kind == 2;
  if (kind != 4 && work.bytes() != 0) {
    // Pinned memory has a device address too, so only pageable memory can be on the wrong side.
    if (!wants_host_source && work.src_memory == MemoryKind::pageable) return kInvalidValue;
    if (!wants_host_target && work.dst_memory == MemoryKind::pageable) return kInvalidValue;
    if (wants_host_source && !from_host) return kInvalidValue;
    if (wants_host_target && !to_host) return kInvalidValue;
  }
  if (from_host) {
    work.kind = to_host ? CopyKind::host_to_host : CopyKind::host_to_device;
  } else if (to_host) {
    work.kind = CopyKind::device_to_host;
  } else {
    work.kind =
        work.src_device == work.dst_device ? CopyKind::device_to_device : CopyKind::peer_to_peer;
  }
  return 0;
}

int prepare_fill(FillWork& work) {
  if (work.width * work.height != 0 && work.dst == nullptr) return kInvalidValue;
  const Lock guard = Engine::get().lock();
  work.memory = memory_kind(work.dst);
  return work.memory == MemoryKind::pageable && work.width * work.height != 0 ? kInvalidValue : 0;
}

Operation* make_operation(Stream& stream, const Work& work, std::uint32_t correlation_id) {
  return std::visit([&](const auto& w) { return make(stream, w, correlation_id); }, work);
}

int submit(Stream& stream, const Work& work) {
  Engine& engine = Engine::get();
  Lock guard = engine.lock();
  if (stream.magic != kStreamMagic) return kInvalidHandle;
  if (stream.capture != nullptr) return capture_work(stream, work);
  if (const int error = check_implicit_capture(stream)) return error;
  Device& device = *stream.context->device;
  if (device.sticky_error != 0) return device.sticky_error;
  engine.wait_for_room(guard, stream);
  Operation* operation = make_operation(stream, work, thread_state().correlation_id);
  const bool blocks = work_blocks(work);
  if (const auto* copy = std::get_if<CopyWork>(&work)) {
    if (copy->kind == CopyKind::host_to_device && copy->src_memory == MemoryKind::pageable &&
        !blocks) {
      stage(*operation, *copy);
    }
  }
  const std::int64_t now = operation->queued_ns;
  engine.enqueue(operation, awaited(work));
  if (blocks) return engine.wait(guard, operation, "copy_blocks");
  engine.retire_due(now);
  return 0;
}

Stream* find_stream(void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  ThreadState& thread = thread_state();
  Context* context = nullptr;
  if (value <= 2) {
    context = require_context();
    if (context == nullptr) return nullptr;
  }
  if (value == 2 || (value == 0 && thread.per_thread_default)) {
    Stream*& own = thread.default_streams[context];
    if (own == nullptr) {
      own = create_stream(*context, StreamKind::blocking, 0);
      own->per_thread = true;
    }
    return own;
  }
  if (value <= 1) return &context->legacy;
  auto* stream = static_cast<Stream*>(handle);
  return stream->magic == kStreamMagic ? stream : nullptr;
}

}  // namespace simgpu
