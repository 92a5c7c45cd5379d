// SPDX-License-Identifier: Apache-2.0
//
// What CUDA keeps per host thread: the current device and context, the last error, the call that
// is running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model.hpp"

namespace simgpu {

struct Dimensions {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

// A <<<grid, block, shared, stream>>> between its push and its pop.
struct LaunchConfiguration {
  Dimensions grid;
  Dimensions block;
  std::size_t shared_bytes;
  void* stream;
};

struct ThreadState {
  std::uint32_t device = 0;          // cudaSetDevice
  std::vector<Context*> contexts;    // the driver's stack; the last one is current
  int last_error = 0;                // cudaGetLastError
  std::uint32_t correlation_id = 0;  // of the API call that runs; 0 outside
  const char* function = "";         // likewise
  bool per_thread_default = false;   // it is a _ptsz or _ptds form: stream 0 is the thread's own
  bool initialising = false;         // inside InitializeInjection
  int capture_mode = 0;              // cudaThreadExchangeStreamCaptureMode
  std::vector<LaunchConfiguration> launches;
  std::map<Context*, Stream*> default_streams;  // cudaStreamPerThread
};

ThreadState& thread_state() noexcept;

}  // namespace simgpu
