// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <algorithm>
#include <condition_variable>

#include "callbacks.hpp"
#include "clock.hpp"
#include "memory.hpp"
#include "notices.hpp"
#include "options.hpp"
#include "remote.hpp"
#include "truth.hpp"

namespace simgpu {
namespace {

std::condition_variable& resolution() {
  static auto* const kCondition = new std::condition_variable;  // leaked: waiters may outlive main
  return *kCondition;
}

// Zero-length entries of a queue that do not travel to the device on their own.
bool is_instant(OperationKind kind) {
  return kind == OperationKind::event_wait || kind == OperationKind::marker ||
         kind == OperationKind::graph_launch;
}

CopyEngine* copy_engine(Operation& operation) {
  if (operation.record.kind != OperationKind::memcpy) return nullptr;
  std::array<CopyEngine, 3>& engines = operation.stream->context->device->copy_engines;
  switch (operation.record.copy_kind) {
    case CopyKind::host_to_device:
      return &engines[0];
    case CopyKind::device_to_host:
      return &engines[1];
    case CopyKind::peer_to_peer:
      return &engines[2];
    default:
      return nullptr;
  }
}

}  // namespace

void wait_for_resolution(Lock& lock) {
  resolution().wait(lock);
}
void notify_resolution() {
  resolution().notify_all();
}

std::int64_t CopyEngine::book(std::int64_t earliest_ns, std::int64_t duration_ns,
                              std::int64_t now_ns) {
  const auto past =
      std::find_if(busy.begin(), busy.end(), [now_ns](const Busy& b) { return b.end_ns > now_ns; });
  busy.erase(busy.begin(), past);
  std::int64_t start_ns = earliest_ns;
  auto at = busy.begin();
  for (; at != busy.end(); ++at) {
    if (at->end_ns <= start_ns) continue;
    if (at->start_ns >= start_ns + duration_ns) break;
    start_ns = at->end_ns;
  }
  busy.insert(at, Busy{start_ns, start_ns + duration_ns});
  return start_ns;
}

Engine& Engine::get() {
  static Engine* const kEngine = new Engine;
  return *kEngine;
}

Operation* Engine::create(OperationKind kind, Stream& stream, std::uint32_t correlation_id) {
  Operation* operation = free_;
  if (operation != nullptr) {
    free_ = operation->next;
    operation->next = nullptr;
  } else {
    operation = new Operation;
  }
  OperationRecord& record = operation->record;
  record.kind = kind;
  record.id = next_id_++;
  record.correlation_id = correlation_id;
  record.device_id = stream.context->device->id;
  record.context_uid = stream.context->uid;
  record.stream_id = stream.id;
  record.context = stream.context;
  record.stream = stream.kind == StreamKind::legacy ? nullptr : &stream;
  record.src_device = record.dst_device = record.device_id;
  record.src_context_uid = record.dst_context_uid = record.context_uid;
  record.channel_id = stream.id;
  record.channel_type = kind == OperationKind::memcpy ? 2 : 1;
  operation->stream = &stream;
  operation->queued_ns = now_ns();
  operation->earliest_ns = operation->queued_ns;
  if (!is_instant(kind)) operation->earliest_ns += options().launch_latency_ns;
  return operation;
}

void Engine::add_gate(Operation& operation, Operation* before) {
  if (before == nullptr) return;
  const bool had_ended = before->resolved && before->end_ns <= operation.queued_ns;
  if (truth_enabled()) {
    (had_ended ? operation.past_edges : operation.edges).push_back(before->record.id);
  }
  if (before->resolved) {
    operation.gate_ns = std::max(operation.gate_ns, before->end_ns);
  } else {
    reference(before);
    operation.waits_for.push_back(before);
  }
}

void Engine::add_gate(Operation& operation, const Stream& stream) {
  // The newest operation stands for all before it, and its end for its stream's.
  if (stream.last != nullptr) add_gate(operation, stream.last);
}

void Engine::implicit_streams(const Stream& stream, std::vector<Stream*>& out) const {
  if (stream.kind == StreamKind::legacy) {
    for (Stream* other : stream.context->blocking) out.push_back(other);
  } else if (stream.kind == StreamKind::blocking) {
    out.push_back(&stream.context->legacy);
  }
}

void Engine::gather_gates(Operation& operation, std::span<Operation* const> after) {
  Stream& stream = *operation.stream;
  if (stream.unresolved == 0) {
    operation.gate_ns = std::max(operation.gate_ns, stream.tail_end_ns);
  } else {
    operation.stream_before = stream.tail;
  }
  if (stream.kind == StreamKind::blocking) {
    add_gate(operation, stream.context->legacy);
  } else if (stream.kind == StreamKind::legacy) {
    for (const Stream* other : stream.context->blocking) add_gate(operation, *other);
  }
  for (Operation* before : after) add_gate(operation, before);
}

void Engine::enqueue(Operation* operation, std::span<Operation* const> after) {
  Stream& stream = *operation->stream;
  gather_gates(*operation, after);
  if (stream.tail != nullptr) {
    stream.tail->next = operation;
  } else {
    stream.head = operation;
  }
  stream.tail = operation;
  ++stream.depth;
  ++stream.unresolved;
  if (stream.last != nullptr) release(stream.last);
  stream.last = operation;
  reference(operation);
  list(stream);
  if (listener_wants(kWantOperations) && operation->record.kind != OperationKind::marker) {
    operation->record.tag = notify_queued(*operation);
  }
  try_resolve(*operation);
}

bool Engine::try_resolve(Operation& operation) {
  if (operation.started) return false;
  if (operation.stream_before != nullptr) {
    if (!operation.stream_before->resolved) return false;
    operation.gate_ns = std::max(operation.gate_ns, operation.stream_before->end_ns);
    operation.stream_before = nullptr;
  }
  std::erase_if(operation.waits_for, [&](Operation* before) {
    if (!before->resolved) return false;
    operation.gate_ns = std::max(operation.gate_ns, before->end_ns);
    release(before);
    return true;
  });
  if (!operation.waits_for.empty()) return false;
  set_times(operation, std::max(operation.gate_ns, operation.earliest_ns));
  return operation.resolved;
}

void Engine::set_times(Operation& operation, std::int64_t start_ns) {
  Stream& stream = *operation.stream;
  if (CopyEngine* engine = copy_engine(operation)) {
    start_ns = engine->book(start_ns, operation.duration_ns, operation.queued_ns);
  }
  operation.start_ns = start_ns;
  operation.started = true;
  if (operation.record.kind == OperationKind::host_function) {
    CallbackThread::get().run_at(start_ns, &operation);
    return;
  }
  if (operation.never_ends) return;
  if (operation.remote != nullptr) {
    operation.remote->started(operation.remote_plan, &operation, start_ns);
    return;
  }
  if (operation.graph_begin != nullptr) {
    operation.start_ns = operation.graph_begin->end_ns;
    release(operation.graph_begin);
    operation.graph_begin = nullptr;
  }
  operation.end_ns = start_ns + operation.duration_ns;
  operation.resolved = true;
  --stream.unresolved;
  stream.tail_end_ns = operation.end_ns;
  if (stream.head == &operation) next_end_ns_ = std::min(next_end_ns_, operation.end_ns);
  // Somebody may poll the target of a copy without ever calling CUDA.
  if (operation.effect.type == Effect::Type::copy &&
      operation.record.copy_kind == CopyKind::device_to_host && operation.record.is_async &&
      operation.record.dst_memory == MemoryKind::pinned) {
    CallbackThread::get().run_at(operation.end_ns, nullptr);
  }
}

void Engine::resolve_pending() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (Stream* stream : working_) {
      if (stream->unresolved == 0) continue;
      for (Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
        if (operation->resolved) continue;
        if (!try_resolve(*operation)) break;
        changed = true;
      }
    }
  }
  for (const Stream* stream : working_) {
    if (stream->head != nullptr && stream->head->resolved) {
      next_end_ns_ = std::min(next_end_ns_, stream->head->end_ns);
    }
  }
  notify_resolution();
}

void Engine::host_function_ended(Operation* operation) {
  ended_elsewhere(operation, now_ns());
}

void Engine::ended_elsewhere(Operation* operation, std::int64_t end_ns) {
  const Lock guard = lock();
  operation->end_ns = std::max(end_ns, operation->start_ns);
  operation->resolved = true;
  --operation->stream->unresolved;
  operation->stream->tail_end_ns = operation->end_ns;
  resolve_pending();
}

void remote_ended(Operation* operation, std::int64_t end_ns) {
  Engine::get().ended_elsewhere(operation, end_ns);
}

void settle_memory() {
  const Lock guard = Engine::get().lock();
  Engine::get().retire_due(now_ns());
}

void Engine::list(Stream& stream) {
  if (stream.listed) return;
  stream.listed = true;
  working_.push_back(&stream);
}

void Engine::retire(std::int64_t now) {
  for (;;) {
    Stream* first = nullptr;
    for (Stream* stream : working_) {
      const Operation* head = stream->head;
      if (head == nullptr || !head->resolved || head->end_ns > now) continue;
      if (first == nullptr || head->end_ns < first->head->end_ns ||
          (head->end_ns == first->head->end_ns && head->record.id < first->head->record.id)) {
        first = stream;
      }
    }
    if (first == nullptr) break;
    Operation* operation = first->head;
    first->head = operation->next;
    if (first->head == nullptr) first->tail = nullptr;
    --first->depth;
    operation->next = nullptr;
    finish(operation);
  }
  next_end_ns_ = INT64_MAX;
  std::erase_if(working_, [this](Stream* stream) {
    if (stream->head == nullptr) return !(stream->listed = false);
    if (stream->head->resolved) next_end_ns_ = std::min(next_end_ns_, stream->head->end_ns);
    return false;
  });
}

void Engine::finish(Operation* operation) {
  apply(*operation);
  operation->retired = true;
  Device& device = *operation->stream->context->device;
  if (operation->record.kind == OperationKind::kernel) {
    device.busy_ns += std::max<std::int64_t>(
        0, operation->end_ns - std::max(operation->start_ns, device.busy_until_ns));
    device.busy_until_ns = std::max(device.busy_until_ns, operation->end_ns);
  }
  if (operation->error != 0 && device.sticky_error == 0) device.sticky_error = operation->error;
  const bool shown = operation->record.kind != OperationKind::marker &&
                     (listener_wants(kWantOperations) || operation->record.tag != 0);
  if (!shown && !truth_enabled()) {
    release(operation);
    return;
  }
  if (finished_tail_ != nullptr) {
    finished_tail_->next = operation;
  } else {
    finished_ = operation;
  }
  finished_tail_ = operation;
  finished_count_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::release(Operation* operation) {
  if (operation == nullptr || --operation->references != 0) return;
  // Recycle. Vectors keep their storage, so that steady work does not allocate.
  std::vector<Operation*> waits = std::move(operation->waits_for);
  std::vector<std::uint64_t> edges = std::move(operation->edges);
  std::vector<std::uint64_t> past_edges = std::move(operation->past_edges);
  waits.clear();
  edges.clear();
  past_edges.clear();
  *operation = Operation{};
  operation->waits_for = std::move(waits);
  operation->edges = std::move(edges);
  operation->past_edges = std::move(past_edges);
  operation->next = free_;
  free_ = operation;
}

void Engine::deliver_one(Operation& operation) {
  OperationRecord& record = operation.record;
  record.queued_ns = device_clock_ns(record.device_id, operation.queued_ns);
  record.submitted_ns =
      device_clock_ns(record.device_id, std::min(operation.earliest_ns, operation.start_ns));
  record.start_ns = device_clock_ns(record.device_id, operation.start_ns);
  record.end_ns = device_clock_ns(record.device_id, operation.end_ns);
  if (record.kind != OperationKind::marker) notify_finished(record);
  if (truth_enabled()) truth_operation(operation);
}

void Engine::deliver(bool wait_for_others) {
  // A listener may call CUDA, which comes here again; its turn is up already.
  static thread_local bool delivering = false;
  if (delivering) return;
  std::unique_lock<std::mutex> delivery(delivery_mutex_, std::defer_lock);
  if (wait_for_others) {
    delivery.lock();
  } else if (!delivery.try_lock()) {
    return;
  }
  for (;;) {
    Operation* list_head = nullptr;
    {
      const Lock guard = lock();
      list_head = finished_;
      finished_ = finished_tail_ = nullptr;
      finished_count_.store(0, std::memory_order_relaxed);
    }
    if (list_head == nullptr) return;
    delivering = true;
    for (Operation* operation = list_head; operation != nullptr; operation = operation->next) {
      deliver_one(*operation);
    }
    delivering = false;
    const Lock guard = lock();
    while (list_head != nullptr) {
      Operation* next = list_head->next;
      list_head->next = nullptr;
      release(list_head);
      list_head = next;
    }
  }
}

}  // namespace simgpu
