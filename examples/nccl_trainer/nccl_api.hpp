// SPDX-License-Identifier: Apache-2.0
//
// As much of NCCL as this example calls. CUDA toolkits have no nccl.h, so its functions are looked up in
// libnccl.so.2 at run time, as frameworks do.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

struct NcclId {
  char bytes[128];
};
using NcclCommunicator = struct ncclComm*;
constexpr int kNcclFloat32 = 7;
constexpr int kNcclSum = 0;

struct Nccl {
  Nccl();  // ends the program where there is no NCCL

  int (*get_unique_id)(NcclId* id);
  int (*comm_init_rank)(NcclCommunicator* communicator, int ranks, NcclId id, int rank);
  int (*comm_destroy)(NcclCommunicator communicator);
  int (*all_reduce)(const void* input, void* output, size_t count, int type, int reduction,
                    NcclCommunicator communicator, cudaStream_t stream);
};

void nccl_check(int result, const char* what);
