// SPDX-License-Identifier: Apache-2.0
//
// NCCL's own NVTX ranges: one around each function, in the domain "NCCL", with a payload that says what
// it is asked for. NCCL_NVTX_DISABLE=1 switches them off, as in NCCL.
//
// exported function → **NvtxRange** → NVTX → the injected tool
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/communicator.hpp"

namespace simgpu::nccl {

class NvtxRange {
 public:
  // Without a payload.
  explicit NvtxRange(const char* function);
  // Of an operation: NCCL's layouts, by function.
  NvtxRange(const char* function, const Communicator* communicator, TaskKind kind, std::size_t count, DataType type,
            int peer, int reduction);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

  // The range is of a function that has made a communicator, which its end tells.
  void made(const Communicator& communicator);
  void split_off(const Communicator& communicator, const Communicator& parent, int color, int key);

 private:
  bool pushed_ = false;
  std::uint64_t schema_ = 0;
  std::size_t bytes_ = 0;
  alignas(8) std::byte payload_[48] = {};
};

}  // namespace simgpu::nccl
