// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/block_pipe.hpp"

#include <cstring>
#include <utility>

namespace gpudiag::kineto_file {

void Block::reserve(std::size_t wanted) {
  if (wanted <= capacity) return;
  auto larger = std::make_unique<char[]>(wanted + kScanPadding);
  if (size > 0) std::memcpy(larger.get(), text.get(), size);
  text = std::move(larger);
  capacity = wanted;
}

Block BlockPipe::take_empty() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return !empty_.empty(); });
  Block block = std::move(empty_.back());
  empty_.pop_back();
  return block;
}

void BlockPipe::give_full(Block block) {
  {
    const std::lock_guard lock{mutex_};
    full_.push_back(std::move(block));
  }
  changed_.notify_all();
}

void BlockPipe::finish() {
  {
    const std::lock_guard lock{mutex_};
    finished_ = true;
  }
  changed_.notify_all();
}

std::optional<Block> BlockPipe::take_full() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return finished_ || !full_.empty(); });
  if (full_.empty()) return std::nullopt;
  Block block = std::move(full_.front());
  full_.pop_front();
  return block;
}

void BlockPipe::give_empty(Block block) {
  {
    const std::lock_guard lock{mutex_};
    empty_.push_back(std::move(block));
  }
  changed_.notify_all();
}

}  // namespace gpudiag::kineto_file
