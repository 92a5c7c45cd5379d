// SPDX-License-Identifier: Apache-2.0
//
// CUDA graphs: what is in one, how a stream's work becomes one, how one is launched.
//
// handlers → Graph (nodes by hand), or Capture (nodes from streams) → GraphExec → engine
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "work.hpp"

namespace simgpu {

constexpr std::uint32_t kGraphMagic = 0x47524150;
constexpr std::uint32_t kNodeMagic = 0x4e4f4445;
constexpr std::uint32_t kExecMagic = 0x45584543;

struct Graph;

// Never destroyed before its graph; ids are unique in the process.
struct GraphNode {
  std::uint32_t magic = kNodeMagic;
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  Work work;
  bool enabled = true;
  std::vector<GraphNode*> before;  // it depends on these
  std::vector<GraphNode*> after;
};

struct Graph {
  std::uint32_t magic = kGraphMagic;
  std::uint32_t id = 0;
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in order of creation
  bool owned_by_node = false;                     // a child graph: destroyed with its parent
};

struct GraphExec {
  std::uint32_t magic = kExecMagic;
  std::uint32_t id = 0;
  unsigned long long flags = 0;
  Graph* graph = nullptr;  // a copy of its own, children dissolved
  // Original node → copy. Nodes of child graphs are in it too.
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  std::vector<GraphNode*> order;   // so that every node follows what it depends on
  std::vector<std::size_t> lanes;  // of each in `order`; 0 is the stream of the launch
  std::size_t lane_count = 1;
  Operation* last_launch = nullptr;  // referenced: launches of one graph follow each other
};

struct Capture {
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  bool owns_graph = true;  // false: cudaStreamBeginCaptureToGraph
  Stream* origin = nullptr;
  int mode = 0;            // cudaStreamCaptureMode
  bool invalid = false;
  std::uint64_t thread = 0;
  std::vector<Stream*> streams;  // all that take part, the origin included
  std::vector<Event*> events;    // recorded in it
};

// Results are cudaError_t. None of these takes the engine's lock unless marked so; graphs are, as
// in CUDA, not safe to be changed by two threads at once.

Graph* create_graph();
void destroy_graph(Graph* graph);
GraphNode* add_node(Graph& graph, Work work, const std::vector<GraphNode*>& before);
void add_dependency(GraphNode& before, GraphNode& after);
void remove_dependency(GraphNode& before, GraphNode& after);
void destroy_node(GraphNode* node);
// A copy, with the originals of its nodes in `copies` where that is not null.
Graph* clone_graph(const Graph& graph,
                   std::unordered_map<const GraphNode*, GraphNode*>* copies = nullptr);

// cudaErrorInvalidValue where the graph has a cycle.
int instantiate_graph(const Graph& graph, unsigned long long flags, GraphExec** out);
void destroy_exec(GraphExec* exec);
// Takes over the parameters of `graph`; cudaErrorGraphExecUpdateFailure where its shape differs,
// with the first offending node in `error_node`.
int update_exec(GraphExec& exec, const Graph& graph, GraphNode** error_node);
// Queues all nodes [takes the lock].
int launch_graph(GraphExec& exec, Stream& stream);

// [locked] Of a capturing stream: adds the work to the graph.
int capture_work(Stream& stream, const Work& work);
// [locked] An event recorded in a capture pulls the stream that waits for it in.
int capture_wait(Stream& stream, Event& event);
// [locked] cudaErrorStreamCaptureImplicit where the legacy stream would have to wait for a stream
// that is being captured.
int check_implicit_capture(const Stream& stream);
// [takes the lock] What a call that cannot be captured (a wait, an allocation) gets while a
// capture forbids it: 0 or cudaErrorStreamCaptureUnsupported.
int check_unsafe_call();
// [takes the lock]
int begin_capture(Stream& stream, int mode, Graph* into, const std::vector<GraphNode*>& front);
int end_capture(Stream& stream, Graph** out);

}  // namespace simgpu
