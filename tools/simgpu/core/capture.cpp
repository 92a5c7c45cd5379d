// SPDX-License-Identifier: Apache-2.0
//
// Stream capture: work given to a capturing stream becomes nodes of a graph; events carry the
// capture to other streams and back.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "engine.hpp"
#include "graph.hpp"
#include "memory.hpp"

namespace simgpu {
namespace {

constexpr int kIllegalState = 401;
constexpr int kUnsupported = 900;
constexpr int kInvalidated = 901;
constexpr int kUnmatched = 903;
constexpr int kUnjoined = 904;
constexpr int kIsolation = 905;
constexpr int kImplicit = 906;
constexpr int kWrongThread = 908;
constexpr int kModeGlobal = 0;
constexpr int kModeRelaxed = 2;

// All captures under way; guarded by the engine's lock.
std::vector<Capture*>& captures() {
  static auto* const kCaptures = new std::vector<Capture*>;
  return *kCaptures;
}
std::atomic<int> g_capture_count{0};  // relaxed: spares the lock where nothing is captured

std::uint64_t this_thread() {
  return static_cast<std::uint64_t>(pthread_self());
}

void merge_front(std::vector<GraphNode*>& front, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more) {
    if (std::find(front.begin(), front.end(), node) == front.end()) front.push_back(node);
  }
}

// Every node from which one of `ends` can be reached, the ends included.
std::unordered_set<const GraphNode*> ancestors(const std::vector<GraphNode*>& ends) {
  std::unordered_set<const GraphNode*> seen;
  std::vector<const GraphNode*> open(ends.begin(), ends.end());
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    open.insert(open.end(), node->before.begin(), node->before.end());
  }
  return seen;
}

bool joined(const Capture& capture) {
  const auto reached = ancestors(capture.origin->capture_front);
  for (const Stream* stream : capture.streams) {
    for (const GraphNode* node : stream->capture_front) {
      if (!reached.contains(node)) return false;
    }
  }
  return true;
}

}  // namespace

int capture_wait(Stream& stream, Event& event) {
  if (event.capture == nullptr) {
    if (stream.capture != nullptr) {
      stream.capture->invalid = true;
      return kIsolation;
    }
    return 0;
  }
  Capture& capture = *event.capture;
  if (stream.capture == nullptr) {
    if (stream.kind == StreamKind::legacy) return kImplicit;
    stream.capture = &capture;
    stream.capture_front = event.capture_front;
    capture.streams.push_back(&stream);
    return 0;
  }
  if (stream.capture != &capture) {
    capture.invalid = true;
    return kIsolation;
  }
  merge_front(stream.capture_front, event.capture_front);
  return 0;
}

int capture_work(Stream& stream, const Work& work) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return kInvalidated;
  if (const auto* record = std::get_if<EventRecordWork>(&work)) {
    record->event->capture = &capture;
    capture.events.push_back(record->event);
    record->event->capture_front = stream.capture_front;
    return 0;
  }
  if (const auto* wait = std::get_if<EventWaitWork>(&work)) {
    return capture_wait(stream, *wait->event);
  }
  Work kept = work;
  if (auto* child = std::get_if<ChildWork>(&kept)) {
    child->graph = clone_graph(*child->graph);
    child->graph->owned_by_node = true;
  }
  GraphNode* node = add_node(*capture.graph, std::move(kept), stream.capture_front);
  stream.capture_front.assign(1, node);
  return 0;
}

int check_implicit_capture(const Stream& stream) {
  if (stream.kind != StreamKind::legacy || captures().empty()) return 0;
  for (const Stream* other : stream.context->blocking) {
    if (other->capture == nullptr) continue;
    other->capture->invalid = true;
    return kImplicit;
  }
  return 0;
}

int check_unsafe_call() {
  if (g_capture_count.load(std::memory_order_relaxed) == 0) return 0;
  const int mode = thread_state().capture_mode;
  if (mode == kModeRelaxed) return 0;
  const Lock guard = Engine::get().lock();
  for (Capture* capture : captures()) {
    if (capture->mode == kModeRelaxed) continue;
    const bool mine = capture->thread == this_thread();
    const bool everybody = mode == kModeGlobal && capture->mode == kModeGlobal;
    if (!mine && !everybody) continue;
    capture->invalid = true;
    return kUnsupported;
  }
  return 0;
}

int begin_capture(Stream& stream, int mode, Graph* into, const std::vector<GraphNode*>& front) {
  static std::atomic<std::uint64_t> ids{0};  // relaxed: a counter
  Graph* graph = into != nullptr ? into : create_graph();
  const Lock guard = Engine::get().lock();
  if (stream.kind == StreamKind::legacy || stream.capture != nullptr) {
    if (into == nullptr) destroy_graph(graph);
    return stream.capture != nullptr ? kIllegalState : kUnsupported;
  }
  auto* capture = new Capture;
  capture->id = ids.fetch_add(1, std::memory_order_relaxed) + 1;
  capture->graph = graph;
  capture->owns_graph = into == nullptr;
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = this_thread();
  capture->streams.push_back(&stream);
  captures().push_back(capture);
  g_capture_count.fetch_add(1, std::memory_order_relaxed);
  stream.capture = capture;
  stream.capture_front = front;
  return 0;
}

int end_capture(Stream& stream, Graph** out) {
  *out = nullptr;
  const Lock guard = Engine::get().lock();
  Capture* capture = stream.capture;
  if (capture == nullptr) return kIllegalState;
  if (capture->origin != &stream) return kUnmatched;
  if (capture->mode != kModeRelaxed && capture->thread != this_thread()) return kWrongThread;
  int result = 0;
  if (capture->invalid) {
    result = kInvalidated;
  } else if (!joined(*capture)) {
    result = kUnjoined;
  }
  for (Stream* member : capture->streams) {
    member->capture = nullptr;
    member->capture_front.clear();
  }
  std::erase(captures(), capture);
  g_capture_count.fetch_sub(1, std::memory_order_relaxed);
  if (result == 0) {
    *out = capture->graph;
  } else if (capture->owns_graph) {
    destroy_graph(capture->graph);
  }
  for (Event* event : capture->events) {
    if (event->capture == capture) event->capture = nullptr;
  }
  delete capture;
  return result;
}

}  // namespace simgpu
