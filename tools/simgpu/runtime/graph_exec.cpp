// SPDX-License-Identifier: Apache-2.0
//
// Executable graphs: instantiation, launch, update.
#include <algorithm>

#include "runtime/graph_common.hpp"

namespace {

cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags) {
  const Graph* known = find_graph(graph);
  if (out == nullptr || known == nullptr) return cudaErrorInvalidValue;
  require_context();
  GraphExec* exec = nullptr;
  if (const int error = instantiate_graph(*known, flags, &exec)) return as_error(error);
  *out = reinterpret_cast<cudaGraphExec_t>(exec);
  return cudaSuccess;
}

// The node of the executable graph that came from `node`.
GraphNode* copy_of(cudaGraphExec_t exec, cudaGraphNode_t node) {
  const GraphExec* known = find_exec(exec);
  if (known == nullptr) return nullptr;
  const auto at = known->copies.find(reinterpret_cast<GraphNode*>(node));
  return at == known->copies.end() ? nullptr : at->second;
}

cudaError_t set_work(cudaGraphExec_t exec, cudaGraphNode_t node, const Work& work) {
  GraphNode* copy = copy_of(exec, node);
  if (copy == nullptr || copy->work.index() != work.index()) return cudaErrorInvalidValue;
  copy->work = work;
  return cudaSuccess;
}

template <typename Params>
cudaError_t set_params(cudaGraphExec_t exec, cudaGraphNode_t node, const Params* params) {
  Work work;
  if (const cudaError_t error = work_of(params, work)) return error;
  return set_work(exec, node, work);
}

}  // namespace

SIMGPU_RUNTIME(cudaGraphInstantiate) {
  return instantiate(p.pGraphExec, p.graph, p.flags);
}
SIMGPU_RUNTIME(cudaGraphInstantiateWithFlags) {
  return instantiate(p.pGraphExec, p.graph, p.flags);
}

SIMGPU_RUNTIME(cudaGraphInstantiateWithParams) {
  if (p.instantiateParams == nullptr) return cudaErrorInvalidValue;
  const cudaError_t error = instantiate(p.pGraphExec, p.graph, p.instantiateParams->flags);
  p.instantiateParams->errNode_out = nullptr;
  p.instantiateParams->result_out =
      error == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  return error;
}

SIMGPU_RUNTIME(cudaGraphExecDestroy) {
  GraphExec* exec = find_exec(p.graphExec);
  if (exec == nullptr) return cudaErrorInvalidValue;
  destroy_exec(exec);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphExecGetFlags) {
  const GraphExec* exec = find_exec(p.graphExec);
  if (exec == nullptr || p.flags == nullptr) return cudaErrorInvalidValue;
  *p.flags = exec->flags;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphLaunch) {
  GraphExec* exec = find_exec(p.graphExec);
  if (exec == nullptr) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& stream) { return launch_graph(*exec, stream); });
}

SIMGPU_RUNTIME(cudaGraphUpload) {
  if (find_exec(p.graphExec) == nullptr) return cudaErrorInvalidValue;
  return with_stream(p.stream, [](Stream&) { return 0; });
}

SIMGPU_RUNTIME(cudaGraphExecUpdate) {
  GraphExec* exec = find_exec(p.hGraphExec);
  const Graph* graph = find_graph(p.hGraph);
  if (exec == nullptr || graph == nullptr) return cudaErrorInvalidValue;
  GraphNode* error_node = nullptr;
  const int error = update_exec(*exec, *graph, &error_node);
  if (p.resultInfo != nullptr) {
    p.resultInfo->result =
        error == 0 ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
    p.resultInfo->errorNode = handle(error_node);
    p.resultInfo->errorFromNode = nullptr;
  }
  return as_error(error);
}

SIMGPU_RUNTIME(cudaGraphExecKernelNodeSetParams) {
  return set_params(p.hGraphExec, p.node, p.pNodeParams);
}
SIMGPU_RUNTIME(cudaGraphExecMemcpyNodeSetParams) {
  return set_params(p.hGraphExec, p.node, p.pNodeParams);
}
SIMGPU_RUNTIME(cudaGraphExecMemsetNodeSetParams) {
  return set_params(p.hGraphExec, p.node, p.pNodeParams);
}
SIMGPU_RUNTIME(cudaGraphExecHostNodeSetParams) {
  return set_params(p.hGraphExec, p.node, p.pNodeParams);
}

SIMGPU_RUNTIME(cudaGraphExecMemcpyNodeSetParams1D) {
  Work work;
  if (const cudaError_t error = linear_copy_work(p.dst, p.src, p.count, p.kind, work)) {
    return error;
  }
  return set_work(p.hGraphExec, p.node, work);
}

SIMGPU_RUNTIME(cudaGraphExecEventRecordNodeSetEvent) {
  Event* event = find_event(p.event);
  if (event == nullptr) return cudaErrorInvalidValue;
  return set_work(p.hGraphExec, p.hNode, EventRecordWork{event});
}

SIMGPU_RUNTIME(cudaGraphExecEventWaitNodeSetEvent) {
  Event* event = find_event(p.event);
  if (event == nullptr) return cudaErrorInvalidValue;
  return set_work(p.hGraphExec, p.hNode, EventWaitWork{event});
}

SIMGPU_RUNTIME(cudaGraphNodeSetEnabled) {
  GraphNode* copy = copy_of(p.hGraphExec, p.hNode);
  if (copy == nullptr) return cudaErrorInvalidValue;
  copy->enabled = p.isEnabled != 0;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphNodeGetEnabled) {
  const GraphNode* copy = copy_of(p.hGraphExec, p.hNode);
  if (copy == nullptr || p.isEnabled == nullptr) return cudaErrorInvalidValue;
  *p.isEnabled = copy->enabled ? 1 : 0;
  return cudaSuccess;
}
