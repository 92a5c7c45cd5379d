// SPDX-License-Identifier: Apache-2.0
//
// What the graph handlers share: handles, and lists of nodes as C hands them over.
#pragma once

#include <algorithm>

#include "runtime/entry.hpp"

namespace simgpu {

inline cudaGraph_t handle(Graph* graph) { return reinterpret_cast<cudaGraph_t>(graph); }
inline cudaGraphNode_t handle(GraphNode* node) { return reinterpret_cast<cudaGraphNode_t>(node); }

// The object behind a handle, or null.
inline Graph* find_graph(cudaGraph_t graph) {
  auto* known = reinterpret_cast<Graph*>(graph);
  return known != nullptr && known->magic == kGraphMagic ? known : nullptr;
}
inline GraphNode* find_node(cudaGraphNode_t node) {
  auto* known = reinterpret_cast<GraphNode*>(node);
  return known != nullptr && known->magic == kNodeMagic ? known : nullptr;
}
inline GraphExec* find_exec(cudaGraphExec_t exec) {
  auto* known = reinterpret_cast<GraphExec*>(exec);
  return known != nullptr && known->magic == kExecMagic ? known : nullptr;
}

// Fills a list the way CUDA does: null asks for the size; what does not fit is left out.
template <typename Nodes>
void put_nodes(const Nodes& nodes, cudaGraphNode_t* out, std::size_t* count) {
  if (out == nullptr) {
    *count = nodes.size();
    return;
  }
  for (std::size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? handle(nodes[i]) : nullptr;
  *count = std::min(*count, nodes.size());
}

// Adds a node behind `count` others; checks all handles.
cudaError_t add_graph_node(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* before,
                           std::size_t count, Work work);

// The work a node's parameters describe.
cudaError_t work_of(const cudaKernelNodeParams* params, Work& work);
cudaError_t work_of(const cudaMemcpy3DParms* params, Work& work);
cudaError_t work_of(const cudaMemsetParams* params, Work& work);
cudaError_t work_of(const cudaHostNodeParams* params, Work& work);
cudaError_t linear_copy_work(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                             Work& work);
cudaError_t work_of(const cudaGraphNodeParams* params, Work& work);

}  // namespace simgpu
