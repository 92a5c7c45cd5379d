// SPDX-License-Identifier: Apache-2.0
//
// The profiler plugin of NCCL_PROFILER_PLUGIN, found and called by NCCL's rules.
//
// exported function, Group, Communicator::launch → **profiler** → the plugin
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "nccl/plan.hpp"

namespace simgpu::nccl {

class Communicator;

// What a communicator has with the plugin. The host's own.
struct ProfilerContext {
  void* context = nullptr;
  bool opened = false;                       // init was called, finalize not yet
  std::array<std::uint64_t, 10> numbers{};   // by TaskKind: operations so far
};

// At the end of ncclCommInit*; loads the plugin for the process's first communicator.
void open_profiler(ProfilerContext& context, std::uint64_t communicator, std::uint32_t ranks, std::uint32_t rank);
// At the communicator's end; the plugin's library is closed behind the last one.
void close_profiler(ProfilerContext& context);

// One call of a collective or transfer, from the function's begin to its end.
class ProfiledCall {
 public:
  ProfiledCall(Communicator& communicator, cudaStream_t stream, const Task& task, int group_depth);
  ~ProfiledCall();
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

 private:
  void* handle_ = nullptr;
};

// The outermost group ends; what it holds is launched in between. Of this thread.
void profile_group_end_begins();
void profile_group_end_ends();

// Around a plan's launch, and behind it. Of a plan that went into a graph nothing is told behind it.
void* profile_launch_begins(const Plan& plan, cudaStream_t stream);
void profile_launch_ends(void* handle);
void profile_plan(const Plan& plan);

// NCCL's names of them.
const char* profiler_function(TaskKind kind);
const char* profiler_type(DataType type);

}  // namespace simgpu::nccl
