// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/text_producer.hpp"

#include <cstring>
#include <string_view>
#include <utility>

namespace gpudiag::kineto_file {
namespace {

/// A block and its events stay within the second-level cache on their way to the other thread.
constexpr std::size_t kBlockBytes = 256u << 10;

}  // namespace

ProducerResult produce_blocks(ByteInput& input, EventCutter& cutter, BlockPipe& pipe) {
  ProducerResult result;
  Block block = pipe.take_empty();
  block.size = 0;
  for (bool last = false; !last;) {
    block.reserve(kBlockBytes);
    if (block.size == block.capacity) block.reserve(2 * block.capacity);  // one event fills it
    const std::size_t space = block.capacity - block.size;
    const std::size_t count = input.read({block.text.get() + block.size, space});
    block.size += count;
    result.json_bytes += count;
    last = count < space;
    block.events.clear();
    const std::size_t done = cutter.cut({block.text.get(), block.size}, last, block.events);
    if (done == 0 && !last) continue;
    block.consumed = input.consumed();
    Block next = last ? Block{} : pipe.take_empty();
    const std::size_t rest = last ? 0 : block.size - done;
    next.size = 0;
    if (rest > 0) {
      next.reserve(rest);
      std::memcpy(next.text.get(), block.text.get() + done, rest);
      next.size = rest;
    }
    pipe.give_full(std::move(block));
    block = std::move(next);
  }
  result.truncated = cutter.truncated() || input.damaged();
  pipe.finish();
  return result;
}

}  // namespace gpudiag::kineto_file
