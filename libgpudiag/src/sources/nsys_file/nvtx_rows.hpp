// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// NVTX ranges and marks, of all domains; and what NCCL's say of its calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sources/nsys_file/builder.hpp"
#include "sources/nsys_file/nccl_payload.hpp"

namespace gpudiag::nsys_file {

/// A call of NCCL's API.
struct NcclCall {
  ProcessId process{};
  ThreadId thread{};
  TimePoint start;
  TimePoint end;
  std::string name;  ///< "ncclAllReduce", "ncclGroupEnd"
  NcclPayload payload;
};

/// Adds a record for each range and mark. Returns NCCL's calls, without those that say nothing: none
/// where no payload was exported.
std::vector<NcclCall> read_nvtx(Builder& builder);

/// The name of a range of PyTorch's emit_nvtx() without the numbers behind it, which differ from call
/// to call: "aten::add" of "aten::add, seq = 12, op_id = 34". `text` itself where it is none.
std::string_view torch_operator(std::string_view text);

}  // namespace gpudiag::nsys_file
