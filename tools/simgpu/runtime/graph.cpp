// SPDX-License-Identifier: Apache-2.0
//
// Building graphs by hand, and looking into them.
#include <algorithm>
#include <cstdio>

#include "runtime/graph_common.hpp"

namespace simgpu {

cudaError_t add_graph_node(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* before,
                           std::size_t count, Work work) {
  Graph* known = find_graph(graph);
  if (out == nullptr || known == nullptr || (count != 0 && before == nullptr)) {
    return cudaErrorInvalidValue;
  }
  std::vector<GraphNode*> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    nodes.push_back(find_node(before[i]));
    if (nodes.back() == nullptr || nodes.back()->graph != known) return cudaErrorInvalidValue;
  }
  *out = handle(add_node(*known, std::move(work), nodes));
  return cudaSuccess;
}

cudaError_t work_of(const cudaKernelNodeParams* params, Work& work) {
  if (params == nullptr) return cudaErrorInvalidValue;
  KernelWork kernel;
  kernel.kernel = find_kernel(params->func);
  if (kernel.kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  kernel.grid = dimensions(params->gridDim);
  kernel.block = dimensions(params->blockDim);
  kernel.shared_bytes = params->sharedMemBytes;
  kernel.arguments = params->kernelParams;
  if (const int error = prepare_kernel(kernel)) return as_error(error);
  work = kernel;
  return cudaSuccess;
}

cudaError_t work_of(const cudaMemcpy3DParms* params, Work& work) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CopyWork copy;
  if (const cudaError_t error = copy_3d_work(*params, copy)) return error;
  if (const int error = prepare_copy(copy, static_cast<int>(params->kind))) return as_error(error);
  work = copy;
  return cudaSuccess;
}

cudaError_t linear_copy_work(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                             Work& work) {
  CopyWork copy;
  copy.dst = dst;
  copy.src = src;
  copy.width = copy.dst_pitch = copy.src_pitch = bytes;
  if (const int error = prepare_copy(copy, static_cast<int>(kind))) return as_error(error);
  work = copy;
  return cudaSuccess;
}

cudaError_t work_of(const cudaMemsetParams* params, Work& work) {
  if (params == nullptr) return cudaErrorInvalidValue;
  FillWork fill = fill_work(*params);
  if (const int error = prepare_fill(fill)) return as_error(error);
  work = fill;
  return cudaSuccess;
}

cudaError_t work_of(const cudaHostNodeParams* params, Work& work) {
  if (params == nullptr || params->fn == nullptr) return cudaErrorInvalidValue;
  work = HostWork{params->fn, nullptr, params->userData};
  return cudaSuccess;
}

}  // namespace simgpu

SIMGPU_RUNTIME(cudaGraphCreate) {
  if (p.pGraph == nullptr || p.flags != 0) return cudaErrorInvalidValue;
  *p.pGraph = handle(create_graph());
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphDestroy) {
  Graph* graph = find_graph(p.graph);
  if (graph == nullptr) return cudaErrorInvalidValue;
  destroy_graph(graph);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphClone) {
  const Graph* graph = find_graph(p.originalGraph);
  if (p.pGraphClone == nullptr || graph == nullptr) return cudaErrorInvalidValue;
  *p.pGraphClone = handle(clone_graph(*graph));
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphAddKernelNode) {
  Work work;
  if (const cudaError_t error = work_of(p.pNodeParams, work)) return error;
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies, work);
}

SIMGPU_RUNTIME(cudaGraphAddMemcpyNode) {
  Work work;
  if (const cudaError_t error = work_of(p.pCopyParams, work)) return error;
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies, work);
}

SIMGPU_RUNTIME(cudaGraphAddMemcpyNode1D) {
  Work work;
  if (const cudaError_t error = linear_copy_work(p.dst, p.src, p.count, p.kind, work)) {
    return error;
  }
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies, work);
}

SIMGPU_RUNTIME(cudaGraphAddMemsetNode) {
  Work work;
  if (const cudaError_t error = work_of(p.pMemsetParams, work)) return error;
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies, work);
}

SIMGPU_RUNTIME(cudaGraphAddHostNode) {
  Work work;
  if (const cudaError_t error = work_of(p.pNodeParams, work)) return error;
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies, work);
}

SIMGPU_RUNTIME(cudaGraphAddEmptyNode) {
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies, EmptyWork{});
}

SIMGPU_RUNTIME(cudaGraphAddChildGraphNode) {
  const Graph* child = find_graph(p.childGraph);
  if (child == nullptr) return cudaErrorInvalidValue;
  Graph* copy = clone_graph(*child);
  copy->owned_by_node = true;
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies, ChildWork{copy});
}

SIMGPU_RUNTIME(cudaGraphChildGraphNodeGetGraph) {
  GraphNode* node = find_node(p.node);
  const auto* child = node == nullptr ? nullptr : std::get_if<ChildWork>(&node->work);
  if (p.pGraph == nullptr || child == nullptr) return cudaErrorInvalidValue;
  *p.pGraph = handle(child->graph);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphAddEventRecordNode) {
  Event* event = find_event(p.event);
  if (event == nullptr) return cudaErrorInvalidValue;
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies,
                        EventRecordWork{event});
}

SIMGPU_RUNTIME(cudaGraphAddEventWaitNode) {
  Event* event = find_event(p.event);
  if (event == nullptr) return cudaErrorInvalidValue;
  return add_graph_node(p.pGraphNode, p.graph, p.pDependencies, p.numDependencies,
                        EventWaitWork{event});
}

SIMGPU_RUNTIME(cudaGraphAddDependencies) {
  if (p.numDependencies != 0 && (p.from == nullptr || p.to == nullptr)) {
    return cudaErrorInvalidValue;
  }
  for (std::size_t i = 0; i < p.numDependencies; ++i) {
    GraphNode* from = find_node(p.from[i]);
    GraphNode* to = find_node(p.to[i]);
    if (from == nullptr || to == nullptr || from->graph != to->graph) return cudaErrorInvalidValue;
    add_dependency(*from, *to);
  }
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphRemoveDependencies) {
  if (p.numDependencies != 0 && (p.from == nullptr || p.to == nullptr)) {
    return cudaErrorInvalidValue;
  }
  for (std::size_t i = 0; i < p.numDependencies; ++i) {
    GraphNode* from = find_node(p.from[i]);
    GraphNode* to = find_node(p.to[i]);
    if (from == nullptr || to == nullptr) return cudaErrorInvalidValue;
    remove_dependency(*from, *to);
  }
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphDestroyNode) {
  GraphNode* node = find_node(p.node);
  if (node == nullptr) return cudaErrorInvalidValue;
  destroy_node(node);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphGetNodes) {
  const Graph* graph = find_graph(p.graph);
  if (graph == nullptr || p.numNodes == nullptr) return cudaErrorInvalidValue;
  std::vector<GraphNode*> nodes;
  for (const auto& node : graph->nodes) nodes.push_back(node.get());
  put_nodes(nodes, p.nodes, p.numNodes);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphGetRootNodes) {
  const Graph* graph = find_graph(p.graph);
  if (graph == nullptr || p.pNumRootNodes == nullptr) return cudaErrorInvalidValue;
  std::vector<GraphNode*> nodes;
  for (const auto& node : graph->nodes) {
    if (node->before.empty()) nodes.push_back(node.get());
  }
  put_nodes(nodes, p.pRootNodes, p.pNumRootNodes);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphGetEdges) {
  const Graph* graph = find_graph(p.graph);
  if (graph == nullptr || p.numEdges == nullptr) return cudaErrorInvalidValue;
  std::vector<GraphNode*> from;
  std::vector<GraphNode*> to;
  for (const auto& node : graph->nodes) {
    for (GraphNode* after : node->after) {
      from.push_back(node.get());
      to.push_back(after);
    }
  }
  std::size_t count = *p.numEdges;
  put_nodes(from, p.from, &count);
  put_nodes(to, p.to, p.numEdges);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphNodeGetDependencies) {
  const GraphNode* node = find_node(p.node);
  if (node == nullptr || p.pNumDependencies == nullptr) return cudaErrorInvalidValue;
  put_nodes(node->before, p.pDependencies, p.pNumDependencies);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphNodeGetDependentNodes) {
  const GraphNode* node = find_node(p.node);
  if (node == nullptr || p.pNumDependentNodes == nullptr) return cudaErrorInvalidValue;
  put_nodes(node->after, p.pDependentNodes, p.pNumDependentNodes);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphNodeGetType) {
  const GraphNode* node = find_node(p.node);
  if (node == nullptr || p.pType == nullptr) return cudaErrorInvalidValue;
  // In the order of Work's alternatives.
  constexpr cudaGraphNodeType kTypes[] = {cudaGraphNodeTypeEmpty,     cudaGraphNodeTypeKernel,
                                          cudaGraphNodeTypeMemcpy,    cudaGraphNodeTypeMemset,
                                          cudaGraphNodeTypeHost,      cudaGraphNodeTypeEventRecord,
                                          cudaGraphNodeTypeWaitEvent, cudaGraphNodeTypeGraph};
  *p.pType = kTypes[node->work.index()];
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphKernelNodeGetParams) {
  const GraphNode* node = find_node(p.node);
  const auto* kernel = node == nullptr ? nullptr : std::get_if<KernelWork>(&node->work);
  if (kernel == nullptr || p.pNodeParams == nullptr) return cudaErrorInvalidValue;
  *p.pNodeParams = cudaKernelNodeParams{};
  p.pNodeParams->func = const_cast<void*>(kernel->kernel->host_function != nullptr
                                              ? kernel->kernel->host_function
                                              : static_cast<const void*>(kernel->kernel));
  p.pNodeParams->gridDim = dim3(kernel->grid.x, kernel->grid.y, kernel->grid.z);
  p.pNodeParams->blockDim = dim3(kernel->block.x, kernel->block.y, kernel->block.z);
  p.pNodeParams->sharedMemBytes = kernel->shared_bytes;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphHostNodeGetParams) {
  const GraphNode* node = find_node(p.node);
  const auto* host = node == nullptr ? nullptr : std::get_if<HostWork>(&node->work);
  if (host == nullptr || p.pNodeParams == nullptr) return cudaErrorInvalidValue;
  p.pNodeParams->fn = host->function;
  p.pNodeParams->userData = host->data;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGraphMemsetNodeGetParams) {
  const GraphNode* node = find_node(p.node);
  const auto* fill = node == nullptr ? nullptr : std::get_if<FillWork>(&node->work);
  if (fill == nullptr || p.pNodeParams == nullptr) return cudaErrorInvalidValue;
  *p.pNodeParams = cudaMemsetParams{
      fill->dst,   fill->pitch, fill->value, fill->value_bytes, fill->width / fill->value_bytes,
      fill->height};
  return cudaSuccess;
}

namespace {

template <typename Params>
cudaError_t set_params(cudaGraphNode_t handle_of_node, const Params* params) {
  GraphNode* node = find_node(handle_of_node);
  Work work;
  if (node == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = work_of(params, work)) return error;
  if (work.index() != node->work.index()) return cudaErrorInvalidValue;
  node->work = work;
  return cudaSuccess;
}

}  // namespace

SIMGPU_RUNTIME(cudaGraphKernelNodeSetParams) {
  return set_params(p.node, p.pNodeParams);
}
SIMGPU_RUNTIME(cudaGraphMemcpyNodeSetParams) {
  return set_params(p.node, p.pNodeParams);
}
SIMGPU_RUNTIME(cudaGraphMemsetNodeSetParams) {
  return set_params(p.node, p.pNodeParams);
}
SIMGPU_RUNTIME(cudaGraphHostNodeSetParams) {
  return set_params(p.node, p.pNodeParams);
}

SIMGPU_RUNTIME(cudaGraphDebugDotPrint) {
  const Graph* graph = find_graph(p.graph);
  if (graph == nullptr || p.path == nullptr) return cudaErrorInvalidValue;
  std::FILE* out = std::fopen(p.path, "w");
  if (out == nullptr) return cudaErrorOperatingSystem;
  std::fprintf(out, "digraph graph_%u {\n", graph->id);
  for (const auto& node : graph->nodes) {
    const auto* kernel = std::get_if<KernelWork>(&node->work);
    std::fprintf(out, "  n%llu [label=\"%s\"];\n", static_cast<unsigned long long>(node->id),
                 kernel == nullptr ? "node" : kernel->kernel->name.c_str());
    for (const GraphNode* after : node->after) {
      std::fprintf(out, "  n%llu -> n%llu;\n", static_cast<unsigned long long>(node->id),
                   static_cast<unsigned long long>(after->id));
    }
  }
  std::fputs("}\n", out);
  std::fclose(out);
  return cudaSuccess;
}
