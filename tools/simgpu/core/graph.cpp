// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include <algorithm>
#include <atomic>

#include "engine.hpp"
#include "memory.hpp"
#include "notices.hpp"

namespace simgpu {
namespace {

std::atomic<std::uint32_t> g_graphs{0};  // relaxed counters: they only make ids
std::atomic<std::uint64_t> g_nodes{0};

constexpr std::array<int, 8> kNodeTypes = {5, 0, 1, 2, 3, 7, 6, 4};  // of Work, as CUgraphNodeType

void tell(ResourceEvent event, Graph* graph, GraphNode* node, GraphNode* other = nullptr) {
  if (!listener_wants(kWantResources)) return;
  ResourceRecord record{};
  record.event = event;
  record.context = current_context();
  record.context_uid = context_uid(record.context);
  record.graph = graph;
  record.node = node;
  if (event == ResourceEvent::node_dependency_created) {
    record.dependency = other;
  } else {
    record.original_node = other;
  }
  if (node != nullptr) record.node_type = kNodeTypes[node->work.index()];
  notify_resource(record);
}

GraphNode* append(Graph& graph, Work work) {
  auto node = std::make_unique<GraphNode>();
  node->id = g_nodes.fetch_add(1, std::memory_order_relaxed) + 1;
  node->graph = &graph;
  node->work = std::move(work);
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

}  // namespace

Graph* create_graph() {
  auto* graph = new Graph;
  graph->id = g_graphs.fetch_add(1, std::memory_order_relaxed) + 1;
  tell(ResourceEvent::graph_created, graph, nullptr);
  return graph;
}

void destroy_graph(Graph* graph) {
  tell(ResourceEvent::graph_destroy_starting, graph, nullptr);
  for (const auto& node : graph->nodes) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    if (child != nullptr && child->graph->owned_by_node) destroy_graph(child->graph);
  }
  graph->magic = 0;
  delete graph;
}

GraphNode* add_node(Graph& graph, Work work, const std::vector<GraphNode*>& before) {
  GraphNode* node = append(graph, std::move(work));
  tell(ResourceEvent::node_created, &graph, node);
  for (GraphNode* other : before) add_dependency(*other, *node);
  return node;
}

void add_dependency(GraphNode& before, GraphNode& after) {
  if (std::find(after.before.begin(), after.before.end(), &before) != after.before.end()) return;
  after.before.push_back(&before);
  before.after.push_back(&after);
  tell(ResourceEvent::node_dependency_created, after.graph, &after, &before);
}

void remove_dependency(GraphNode& before, GraphNode& after) {
  std::erase(after.before, &before);
  std::erase(before.after, &after);
}

void destroy_node(GraphNode* node) {
  tell(ResourceEvent::node_destroy_starting, node->graph, node);
  for (GraphNode* other : node->before) std::erase(other->after, node);
  for (GraphNode* other : node->after) std::erase(other->before, node);
  node->magic = 0;
  std::erase_if(node->graph->nodes, [node](const auto& held) { return held.get() == node; });
}

Graph* clone_graph(const Graph& graph, std::unordered_map<const GraphNode*, GraphNode*>* copies) {
  std::unordered_map<const GraphNode*, GraphNode*> own;
  if (copies == nullptr) copies = &own;
  Graph* clone = create_graph();
  for (const auto& node : graph.nodes) {
    GraphNode* copy = append(*clone, node->work);
    copy->enabled = node->enabled;
    if (auto* child = std::get_if<ChildWork>(&copy->work)) {
      child->graph = clone_graph(*child->graph);
      child->graph->owned_by_node = true;
    }
    (*copies)[node.get()] = copy;
    tell(ResourceEvent::node_cloned, clone, copy, node.get());
  }
  for (const auto& node : graph.nodes) {
    for (GraphNode* before : node->before)
      add_dependency(*(*copies)[before], *(*copies)[node.get()]);
  }
  return clone;
}

std::uint32_t graph_id(void* graph) noexcept {
  auto* known = static_cast<Graph*>(graph);
  return known != nullptr && known->magic == kGraphMagic ? known->id : 0;
}

std::uint32_t graph_exec_id(void* graph_exec) noexcept {
  auto* known = static_cast<GraphExec*>(graph_exec);
  return known != nullptr && known->magic == kExecMagic ? known->id : 0;
}

std::uint64_t graph_node_id(void* node) noexcept {
  auto* known = static_cast<GraphNode*>(node);
  return known != nullptr && known->magic == kNodeMagic ? known->id : 0;
}

}  // namespace simgpu
