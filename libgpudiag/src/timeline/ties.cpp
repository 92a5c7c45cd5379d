// SPDX-License-Identifier: Apache-2.0
#include "timeline/ties.hpp"

#include <algorithm>
#include <tuple>

namespace gpudiag {

Index Ties::thread_of(ThreadId id) {
  if (last_thread_ != kNone && thread_ids_[last_thread_] == id) return last_thread_;
  const auto found = std::find(thread_ids_.begin(), thread_ids_.end(), id);
  last_thread_ = static_cast<Index>(found - thread_ids_.begin());
  if (found == thread_ids_.end()) {
    thread_ids_.push_back(id);
    parent_.push_back(last_thread_);
    host_awaits_.emplace_back();
    stale_ = true;
  }
  return last_thread_;
}

Index Ties::device_of(DeviceId id) {
  const auto found = std::find(device_ids_.begin(), device_ids_.end(), id);
  const auto index = static_cast<Index>(found - device_ids_.begin());
  if (found == device_ids_.end()) {
    device_ids_.push_back(id);
    stale_ = true;
  }
  return index;
}

Index Ties::stream_of(DeviceId device, ContextId context, StreamId stream) {
  const auto same = [&](const Stream& known) {
    return known.id == stream && known.context == context && known.device_id == device;
  };
  if (last_stream_ != kNone && same(streams_[last_stream_])) return last_stream_;
  const auto found = std::find_if(streams_.begin(), streams_.end(), same);
  last_stream_ = static_cast<Index>(found - streams_.begin());
  if (found == streams_.end()) {
    streams_.push_back({device, context, stream, device_of(device), kNone, {}});
    stale_ = true;
  }
  return last_stream_;
}

Index Ties::line_of(Index thread) const {
  while (parent_[thread] != thread) thread = parent_[thread];
  return thread;
}

// The lower index stands for the line: whoever was seen first, so the name does not matter.
void Ties::unite(Index a, Index b) {
  a = line_of(a);
  b = line_of(b);
  if (a == b) return;
  parent_[std::max(a, b)] = std::min(a, b);
  ++merges_;
  stale_ = true;
}

void Ties::launched(Index thread, Index stream, std::int64_t operation_ns, bool compute) {
  if (streams_[stream].launcher == kNone) {
    streams_[stream].launcher = thread;
    stale_ = true;
  }
  unite(streams_[stream].launcher, thread);
  const Index device = streams_[stream].device;
  const auto same = [&](const Load& load) { return load.thread == thread && load.device == device; };
  if (last_load_ == kNone || !same(loads_[last_load_])) {
    const auto found = std::find_if(loads_.begin(), loads_.end(), same);
    last_load_ = static_cast<Index>(found - loads_.begin());
    if (found == loads_.end()) loads_.push_back({thread, device, 0, 0});
  }
  Load& load = loads_[last_load_];
  ++load.operations;
  if (compute) load.compute_ns += std::max<std::int64_t>(operation_ns, 1);
}

void Ties::waits_for(Index stream, Index awaited) {
  auto& known = streams_[stream].awaited;
  if (stream == awaited || std::find(known.begin(), known.end(), awaited) != known.end()) return;
  known.push_back(awaited);
  stale_ = true;
}

void Ties::host_waits_for(Index thread, Index awaited) {
  auto& known = host_awaits_[thread];
  if (std::find(known.begin(), known.end(), awaited) != known.end()) return;
  known.push_back(awaited);
  stale_ = true;
}

void Ties::marks(Index thread, Index device) {
  const bool launches = std::any_of(loads_.begin(), loads_.end(), [&](const Load& load) {
    return line_of(load.thread) == line_of(thread) && load.compute_ns > 0;
  });
  const Index leader = leader_of(device);
  if (!launches && leader != kNone) unite(thread, leader);
}

Index Ties::line_of_stream(Index stream) const {
  const Index launcher = streams_[stream].launcher;
  return launcher == kNone ? kNone : line_of(launcher);
}

bool Ties::has_compute(Index line) const {
  return std::any_of(loads_.begin(), loads_.end(), [&](const Load& load) {
    return load.compute_ns > 0 && line_of(load.thread) == line;
  });
}

Index Ties::leader_of(Index device) const {
  std::tuple<std::int64_t, std::int64_t> most{-1, -1};
  Index leader = kNone;
  for (Index line = 0; line < parent_.size(); ++line) {
    if (parent_[line] != line) continue;
    std::int64_t compute = 0, operations = 0;
    for (const Load& load : loads_) {
      if (load.device != device || line_of(load.thread) != line) continue;
      compute += load.compute_ns;
      operations += load.operations;
    }
    if (operations > 0 && std::tuple(compute, operations) > most) {
      most = {compute, operations};
      leader = line;
    }
  }
  return leader;
}

void Ties::rebuild_chains() {
  stale_ = false;
  chain_.assign(devices(), std::vector<bool>(streams(), false));
  chain_lines_.assign(devices(), std::vector<bool>(threads(), false));
  for (Index device = 0; device < devices(); ++device) {
    auto& chain = chain_[device];
    auto& lines = chain_lines_[device];
    std::vector<Index> waiting;
    const auto reach = [&](Index line) {
      if (line == kNone || lines[line]) return;
      lines[line] = true;
      waiting.push_back(line);
    };
    reach(leader_of(device));
    while (!waiting.empty()) {
      const Index line = waiting.back();
      waiting.pop_back();
      for (Index thread = 0; thread < threads(); ++thread)
        if (line_of(thread) == line)
          for (const Index awaited : host_awaits_[thread]) reach(line_of_stream(awaited));
      for (Index stream = 0; stream < streams(); ++stream) {
        if (line_of_stream(stream) != line) continue;
        chain[stream] = true;
        for (const Index awaited : streams_[stream].awaited) {
          chain[awaited] = true;
          reach(line_of_stream(awaited));
        }
      }
    }
    // Streams on which no launch was seen belong to whoever is there.
    for (Index stream = 0; stream < streams(); ++stream)
      if (line_of_stream(stream) == kNone) chain[stream] = true;
  }
}

bool Ties::in_chain(Index device, Index stream) {
  if (stale_) rebuild_chains();
  return chain_[device][stream];
}

bool Ties::line_in_chain(Index device, Index line) {
  if (stale_) rebuild_chains();
  return line != kNone && chain_lines_[device][line];
}

}  // namespace gpudiag
