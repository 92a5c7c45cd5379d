// SPDX-License-Identifier: Apache-2.0
//
// Stream capture.
#include "runtime/graph_common.hpp"

namespace {

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return cudaStreamCaptureStatusNone;
  return stream.capture->invalid ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
}

cudaError_t nodes_of(const cudaGraphNode_t* handles, std::size_t count,
                     std::vector<GraphNode*>& out) {
  if (count != 0 && handles == nullptr) return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(find_node(handles[i]));
    if (out.back() == nullptr) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

bool known_mode(cudaStreamCaptureMode mode) {
  return mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed;
}

}  // namespace

SIMGPU_RUNTIME(cudaStreamBeginCapture) {
  if (!known_mode(p.mode)) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& stream) {
    return begin_capture(stream, static_cast<int>(p.mode), nullptr, {});
  });
}

SIMGPU_RUNTIME(cudaStreamBeginCaptureToGraph) {
  Graph* graph = find_graph(p.graph);
  std::vector<GraphNode*> front;
  if (graph == nullptr || !known_mode(p.mode)) return cudaErrorInvalidValue;
  if (const cudaError_t error = nodes_of(p.dependencies, p.numDependencies, front)) return error;
  return with_stream(p.stream, [&](Stream& stream) {
    return begin_capture(stream, static_cast<int>(p.mode), graph, front);
  });
}

SIMGPU_RUNTIME(cudaStreamEndCapture) {
  if (p.pGraph == nullptr) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& stream) {
    Graph* graph = nullptr;
    const int error = end_capture(stream, &graph);
    *p.pGraph = handle(graph);
    return error;
  });
}

SIMGPU_RUNTIME(cudaStreamIsCapturing) {
  if (p.pCaptureStatus == nullptr) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& stream) {
    const Lock guard = Engine::get().lock();
    if (const int error = check_implicit_capture(stream)) return error;
    *p.pCaptureStatus = status_of(stream);
    return 0;
  });
}

SIMGPU_RUNTIME(cudaStreamGetCaptureInfo) {
  if (p.captureStatus_out == nullptr) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& stream) {
    const Lock guard = Engine::get().lock();
    *p.captureStatus_out = status_of(stream);
    if (stream.capture == nullptr || stream.capture->invalid) return 0;
    static_assert(sizeof(GraphNode*) == sizeof(cudaGraphNode_t));
    if (p.id_out != nullptr) *p.id_out = stream.capture->id;
    if (p.graph_out != nullptr) *p.graph_out = handle(stream.capture->graph);
    if (p.dependencies_out != nullptr) {
      // Valid until the next call on the stream, as documented.
      *p.dependencies_out = reinterpret_cast<const cudaGraphNode_t*>(stream.capture_front.data());
    }
    if (p.edgeData_out != nullptr) *p.edgeData_out = nullptr;
    if (p.numDependencies_out != nullptr) *p.numDependencies_out = stream.capture_front.size();
    return 0;
  });
}

SIMGPU_RUNTIME(cudaStreamUpdateCaptureDependencies) {
  std::vector<GraphNode*> nodes;
  if (const cudaError_t error = nodes_of(p.dependencies, p.numDependencies, nodes)) return error;
  return with_stream(p.stream, [&](Stream& stream) {
    const Lock guard = Engine::get().lock();
    if (stream.capture == nullptr) return static_cast<int>(cudaErrorIllegalState);
    if (p.flags == cudaStreamSetCaptureDependencies) stream.capture_front.clear();
    stream.capture_front.insert(stream.capture_front.end(), nodes.begin(), nodes.end());
    return 0;
  });
}

SIMGPU_RUNTIME(cudaThreadExchangeStreamCaptureMode) {
  if (p.mode == nullptr || !known_mode(*p.mode)) return cudaErrorInvalidValue;
  const int before = std::exchange(thread_state().capture_mode, static_cast<int>(*p.mode));
  *p.mode = static_cast<cudaStreamCaptureMode>(before);
  return cudaSuccess;
}
