// SPDX-License-Identifier: Apache-2.0
//
// What one kernel of NCCL does: the operations of one group on one communicator and stream.
//
// exported function → Group → **Plan** → launch → Communicator's worker
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nccl/reduce.hpp"

namespace simgpu::nccl {

enum class TaskKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send,
  receive
};

struct Task {
  TaskKind kind = TaskKind::all_reduce;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t count = 0;  // as NCCL counts: of a rank's part where there are parts
  DataType type = kFloat32;
  ReductionRule rule;
  std::uint32_t peer = 0;  // the root, or the other rank

  std::size_t bytes() const { return count * element_bytes(type); }
};

class Communicator;

// Lives until its kernel has ended; one that was captured into a graph lives for ever.
struct Plan {
  Communicator* communicator = nullptr;
  std::vector<Task> tasks;
  bool captured = false;
};

// How the input and the output of a collective are cut into parts of task.bytes().
struct Shape {
  std::size_t input_parts;   // 0: this rank puts nothing in
  std::size_t output_parts;  // 0: this rank gets nothing
};
Shape shape_of(const Task& task, std::uint32_t rank, std::uint32_t ranks);

// How long the device works on it once all ranks have come, ns.
double task_ns(const Task& task, std::uint32_t ranks);

// Mangled name of the kernel that NCCL would run for it, and its grid and block.
std::string kernel_name(const Plan& plan);
unsigned channels(const Plan& plan);
constexpr unsigned kThreads = 512;

}  // namespace simgpu::nccl
