// SPDX-License-Identifier: Apache-2.0
//
// Executable graphs: flattened, put into an order, laid out in lanes, launched.
#include <algorithm>
#include <unordered_map>

#include "engine.hpp"
#include "graph.hpp"
#include "memory.hpp"
#include "notices.hpp"

namespace simgpu {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kUpdateFailure = 910;

// Puts a copy of `graph` into `flat`, children dissolved into their nodes. `first` and `last` get
// the copies a predecessor or a successor of the whole must be tied to.
struct Flattener {
  GraphExec& exec;

  void add(const Graph& graph, const std::vector<GraphNode*>& before,
           std::vector<GraphNode*>& last) {
    std::unordered_map<const GraphNode*, std::vector<GraphNode*>> ends;
    std::vector<const GraphNode*> rest;
    for (const auto& node : graph.nodes) rest.push_back(node.get());
    // Each pass takes the nodes whose predecessors are done; a cycle leaves some for ever.
    while (!rest.empty()) {
      const std::size_t left = rest.size();
      std::erase_if(rest, [&](const GraphNode* node) {
        const bool ready = std::all_of(node->before.begin(), node->before.end(),
                                       [&](GraphNode* b) { return ends.contains(b); });
        if (ready) take(*node, before, ends);
        return ready;
      });
      if (rest.size() == left) {
        cyclic = true;
        return;
      }
    }
    for (const auto& node : graph.nodes) {
      if (!node->after.empty()) continue;
      last.insert(last.end(), ends[node.get()].begin(), ends[node.get()].end());
    }
    if (graph.nodes.empty()) last = before;
  }

  void take(const GraphNode& node, const std::vector<GraphNode*>& roots_before,
            std::unordered_map<const GraphNode*, std::vector<GraphNode*>>& ends) {
    std::vector<GraphNode*> before;
    for (const GraphNode* other : node.before) {
      before.insert(before.end(), ends[other].begin(), ends[other].end());
    }
    if (node.before.empty()) before = roots_before;
    std::vector<GraphNode*>& mine = ends[&node];
    if (const auto* child = std::get_if<ChildWork>(&node.work)) {
      add(*child->graph, before, mine);
      return;
    }
    GraphNode* copy = add_node(*exec.graph, node.work, before);
    copy->enabled = node.enabled;
    exec.copies[&node] = copy;
    exec.order.push_back(copy);
    mine.push_back(copy);
  }

  bool cyclic = false;
};

// A chain stays in the lane of its predecessor; a branch opens a new one.
void choose_lanes(GraphExec& exec) {
  std::unordered_map<const GraphNode*, std::size_t> lane_of;
  std::vector<const GraphNode*> tails;  // newest node of each lane
  for (GraphNode* node : exec.order) {
    std::size_t lane = tails.size();
    for (const GraphNode* before : node->before) {
      const std::size_t candidate = lane_of[before];
      if (tails[candidate] == before) lane = std::min(lane, candidate);
    }
    if (lane == tails.size()) tails.push_back(nullptr);
    tails[lane] = node;
    lane_of[node] = lane;
    exec.lanes.push_back(lane);
  }
  exec.lane_count = std::max<std::size_t>(1, tails.size());
}

Stream* lane_stream(Context& context, std::size_t lane) {
  while (context.lanes.size() < lane) {
    auto* stream = new Stream;
    stream->context = &context;
    stream->kind = StreamKind::graph_lane;
    stream->id = context.next_stream_id++;
    context.lanes.push_back(stream);
  }
  return context.lanes[lane - 1];
}

void tell_exec(ResourceEvent event, GraphExec* exec, const Graph* original) {
  if (!listener_wants(kWantResources)) return;
  ResourceRecord record{};
  record.event = event;
  record.context = current_context();
  record.context_uid = context_uid(record.context);
  record.graph_exec = exec;
  record.graph = const_cast<Graph*>(original);
  notify_resource(record);
}

// A launch in progress: the operations of its nodes, and where each lane has got to.
class Launch {
 public:
  Launch(GraphExec& exec, Stream& stream, std::uint32_t correlation_id)
      : exec_(exec), stream_(stream), correlation_id_(correlation_id) {}

  // [locked]
  void run() {
    Engine& engine = Engine::get();
    // The start holds back every lane until the stream gets to the graph.
    Operation* begin = engine.create(OperationKind::marker, stream_, correlation_id_);
    const std::int64_t earliest = begin->earliest_ns + kGraphLatencyNs;
    Engine::reference(begin);
    begin->earliest_ns = earliest;
    const std::span<Operation* const> previous(&exec_.last_launch,
                                               exec_.last_launch == nullptr ? 0U : 1U);
    engine.enqueue(begin, previous);
    for (std::size_t i = 0; i < exec_.order.size(); ++i)
      add(*exec_.order[i], exec_.lanes[i], begin);
    finish(begin);
  }

 private:
  // A graph reaches the device a little later than a kernel.
  static constexpr std::int64_t kGraphLatencyNs = 5000;

  void add(const GraphNode& node, std::size_t lane, Operation* begin) {
    Stream& stream = lane == 0 ? stream_ : *lane_stream(*stream_.context, lane);
    std::vector<Operation*> after{begin};
    for (const GraphNode* before : node.before) after.push_back(done_[before]);
    Operation* operation = nullptr;
    if (node.enabled) {
      if (const auto* wait = std::get_if<EventWaitWork>(&node.work)) {
        if (wait->event->record != nullptr) after.push_back(wait->event->record);
      }
      operation = make_operation(stream, node.work, correlation_id_);
    } else {
      operation = make_operation(stream, EmptyWork{}, correlation_id_);
    }
    operation->record.graph_id = exec_.id;
    operation->record.graph_node_id = node.id;
    operation->earliest_ns = begin->earliest_ns;  // the device starts nodes without the host
    Engine::reference(operation);
    done_[&node] = operation;
    held_.push_back(operation);
    Engine::get().enqueue(operation, after);
  }

  void finish(Operation* begin) {
    Engine& engine = Engine::get();
    Operation* end = engine.create(OperationKind::graph_launch, stream_, correlation_id_);
    end->record.graph_id = exec_.id;
    end->graph_begin = begin;  // takes over our reference
    end->earliest_ns = 0;      // it ends with its last node, however late the host got here
    engine.enqueue(end, held_);
    engine.release(exec_.last_launch);
    exec_.last_launch = end;
    Engine::reference(end);
    for (Operation* operation : held_) engine.release(operation);
  }

  GraphExec& exec_;
  Stream& stream_;
  std::uint32_t correlation_id_;
  std::unordered_map<const GraphNode*, Operation*> done_;
  std::vector<Operation*> held_;
};

bool same_shape(const GraphNode& a, const GraphNode& b) {
  return a.work.index() == b.work.index() && a.before.size() == b.before.size();
}

}  // namespace

int instantiate_graph(const Graph& graph, unsigned long long flags, GraphExec** out) {
  auto* exec = new GraphExec;
  tell_exec(ResourceEvent::graph_exec_create_starting, exec, &graph);
  exec->graph = create_graph();
  exec->id = exec->graph->id;
  exec->flags = flags;
  Flattener flattener{*exec};
  std::vector<GraphNode*> last;
  flattener.add(graph, {}, last);
  if (flattener.cyclic) {
    destroy_exec(exec);
    return kInvalidValue;
  }
  choose_lanes(*exec);
  tell_exec(ResourceEvent::graph_exec_created, exec, &graph);
  *out = exec;
  return 0;
}

void destroy_exec(GraphExec* exec) {
  tell_exec(ResourceEvent::graph_exec_destroy_starting, exec, exec->graph);
  {
    const Lock guard = Engine::get().lock();
    Engine::get().release(exec->last_launch);
  }
  destroy_graph(exec->graph);
  exec->magic = 0;
  delete exec;
}

int update_exec(GraphExec& exec, const Graph& graph, GraphNode** error_node) {
  GraphExec* fresh = nullptr;
  if (const int error = instantiate_graph(graph, exec.flags, &fresh)) return error;
  int result = 0;
  for (std::size_t i = 0; i < fresh->order.size() && result == 0; ++i) {
    if (i >= exec.order.size() || !same_shape(*exec.order[i], *fresh->order[i])) {
      result = kUpdateFailure;
      for (const auto& [original, copy] : fresh->copies) {
        if (copy == fresh->order[i]) *error_node = const_cast<GraphNode*>(original);
      }
    }
  }
  if (fresh->order.size() != exec.order.size()) result = kUpdateFailure;
  if (result == 0) {
    for (std::size_t i = 0; i < exec.order.size(); ++i) exec.order[i]->work = fresh->order[i]->work;
    // Nodes of the new graph may be named in later calls as well.
    for (const auto& [original, copy] : fresh->copies) {
      const auto at = std::find(fresh->order.begin(), fresh->order.end(), copy);
      exec.copies[original] = exec.order[static_cast<std::size_t>(at - fresh->order.begin())];
    }
  }
  destroy_exec(fresh);
  return result;
}

int launch_graph(GraphExec& exec, Stream& stream) {
  Engine& engine = Engine::get();
  Lock guard = engine.lock();
  if (stream.capture != nullptr) return capture_work(stream, ChildWork{exec.graph});
  if (const int error = check_implicit_capture(stream)) return error;
  if (const int error = stream.context->device->sticky_error) return error;
  engine.wait_for_room(guard, stream);
  Launch(exec, stream, thread_state().correlation_id).run();
  engine.retire_due(now_ns());
  return 0;
}

}  // namespace simgpu
