// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// Joins NCCL's kernels with what its calls say: the kernel by its launch, the launch by the call
// during which it was made.
#pragma once

#include <vector>

#include "sources/nsys_file/builder.hpp"
#include "sources/nsys_file/call_index.hpp"
#include "sources/nsys_file/nvtx_rows.hpp"

namespace gpudiag::nsys_file {

/// Asks for the launches of NCCL's kernels, if there is anything to join them with.
void want_launches(const Builder& builder, const std::vector<NcclCall>& nccl, CallIndex& calls);

/// Describes each kernel of which one can tell which call it is of (record/collective.hpp). Of
/// several kernels launched at the end of one group, only where calls and kernels are as many.
void describe_collectives(Builder& builder, std::vector<NcclCall> nccl, const CallIndex& calls);

/// The rank of each process in the largest communicator that it joined, and that one's size.
struct ProcessRank {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
};
std::map<std::uint32_t, ProcessRank> ranks_of(const std::vector<NcclCall>& nccl);

}  // namespace gpudiag::nsys_file
