// SPDX-License-Identifier: Apache-2.0
#include "nccl/group.hpp"

#include <algorithm>
#include <utility>

namespace simgpu::nccl {

Group& Group::of_thread() {
  static thread_local Group group;
  return group;
}

Result Group::end() {
  if (depth_ == 0) return kInvalidUsage;
  if (--depth_ > 0) return kSuccess;
  return flush();
}

Result Group::add(Communicator& communicator, cudaStream_t stream, const Task& task) {
  put(communicator, stream, task);
  return depth_ > 0 ? kSuccess : flush();
}

void Group::put(Communicator& communicator, cudaStream_t stream, const Task& task) {
  const ProfiledCall call(communicator, stream, task, depth_);
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.communicator == &communicator && entry.stream == stream;
  });
  if (at != entries_.end()) {
    at->plan->tasks.push_back(task);
  } else {
    entries_.push_back(Entry{&communicator, stream, new Plan{&communicator, {task}, false}});
  }
}

Result Group::add(Communicator& entered) {
  entered_.push_back(&entered);
  return depth_ > 0 ? kSuccess : flush();
}

Result Group::flush() {
  Result result = kSuccess;
  for (Communicator* communicator : std::exchange(entered_, {})) {
    result = std::max(result, communicator->wait_complete());
  }
  profile_group_end_begins();
  for (const Entry& entry : std::exchange(entries_, {})) {
    const Result launched = entry.communicator->launch(entry.plan, entry.stream);
    if (launched != kSuccess) delete entry.plan;
    result = std::max(result, launched);
  }
  profile_group_end_ends();
  return result;
}

const char*& last_error_text() {
  static thread_local const char* text = "";
  return text;
}

}  // namespace simgpu::nccl
