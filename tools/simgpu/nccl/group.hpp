// SPDX-License-Identifier: Apache-2.0
//
// ncclGroupStart … ncclGroupEnd: what lies between becomes one kernel per communicator and stream.
#pragma once

#include <vector>

#include "nccl/communicator.hpp"

namespace simgpu::nccl {

// Of one host thread.
class Group {
 public:
  static Group& of_thread();

  void start() { ++depth_; }
  Result end();
  // At once where no group is open.
  Result add(Communicator& communicator, cudaStream_t stream, const Task& task);
  // Waits for the other ranks now, or at the end of the group.
  Result add(Communicator& entered);

 private:
  struct Entry {
    Communicator* communicator;
    cudaStream_t stream;
    Plan* plan;
  };
  void put(Communicator& communicator, cudaStream_t stream, const Task& task);
  Result flush();

  int depth_ = 0;
  std::vector<Entry> entries_;
  std::vector<Communicator*> entered_;
};

// Text of the last failure of this thread, for ncclGetLastError.
const char*& last_error_text();

}  // namespace simgpu::nccl
