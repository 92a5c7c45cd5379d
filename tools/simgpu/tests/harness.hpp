// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the simulated GPU share: a kernel whose duration the test chooses, a gate that
// holds a stream back until the test has queued all it wants, and a listener that keeps what the
// core says. With the gate, starts and ends follow from CUDA's rules alone and can be compared
// exactly, however slow the machine is.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/listener.hpp"

namespace simgpu_test {

// A kernel registered as nvcc's start-up code does; SIMGPU_COSTS of the test program says
// `kernel timed arg0=u64 noise=0`.
cudaError_t launch_timed(std::uint64_t duration_ns, cudaStream_t stream, dim3 grid = 1,
                         dim3 block = 1);
const void* timed_function();
cudaKernelNodeParams timed_node(std::uint64_t& duration_ns);

// A host function at the head of a stream that ends when open() is called.
class Gate {
 public:
  explicit Gate(cudaStream_t stream);
  ~Gate();  // opens
  void open();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool passed_ = false;
};

// Everything the core delivered between construction and finish(). One at a time.
class Recording {
 public:
  Recording();
  ~Recording();
  // Waits for all devices and takes delivery of what has ended.
  void finish();
  // Those of a kind, in the order they were queued.
  std::vector<simgpu::OperationRecord> operations(simgpu::OperationKind kind) const;
  std::vector<simgpu::OperationRecord> kernels() const {
    return operations(simgpu::OperationKind::kernel);
  }
  std::vector<simgpu::SyncRecord> syncs() const;
  std::vector<simgpu::MemoryRecord> memory() const;
  struct Call {
    std::string function;
    std::string symbol;
    std::uint32_t cbid;
    std::uint32_t correlation_id;
    int result;
    bool exited;
  };
  std::vector<Call> calls() const;
};

// A stream destroyed with the test.
class TestStream {
 public:
  explicit TestStream(unsigned flags = cudaStreamNonBlocking);
  ~TestStream();
  operator cudaStream_t() const { return stream_; }  // NOLINT: it stands for its handle

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace simgpu_test
