// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// The first of the two threads that read a trace: bytes in, blocks of whole events out.
#pragma once

#include "sources/kineto_file/block_pipe.hpp"
#include "sources/kineto_file/byte_input.hpp"
#include "sources/kineto_file/event_cutter.hpp"

namespace gpudiag::kineto_file {

/// What is left to say when all blocks have been handed over.
struct ProducerResult {
  std::uint64_t json_bytes = 0;
  bool truncated = false;
};

/// Reads `input` to its end. `cutter` may be looked at afterwards. Returns after pipe.finish().
ProducerResult produce_blocks(ByteInput& input, EventCutter& cutter, BlockPipe& pipe);

}  // namespace gpudiag::kineto_file
