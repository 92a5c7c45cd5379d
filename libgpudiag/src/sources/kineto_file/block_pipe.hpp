// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// Text on its way from the thread that inflates and cuts to the one that parses.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "sources/kineto_file/event_cutter.hpp"
#include "sources/kineto_file/object_end.hpp"

namespace gpudiag::kineto_file {

/// Text and the events cut from it.
struct Block {
  std::unique_ptr<char[]> text;  ///< `capacity` bytes and kScanPadding more, all initialised
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::vector<Cut> events;
  std::uint64_t consumed = 0;  ///< bytes of the file read by then

  void reserve(std::size_t wanted);
  std::string_view event(const Cut& cut) const { return {text.get() + cut.offset, cut.length}; }
};

/// Hands blocks over in order and takes them back for further use: as many exist as the pipe is
/// deep, so memory stays bounded however much faster one side is. One thread on each side.
class BlockPipe {
 public:
  explicit BlockPipe(std::size_t depth) : empty_(depth) {}

  /// [cutting thread] Waits for a block to fill.
  Block take_empty();
  void give_full(Block block);
  /// No block follows.
  void finish();

  /// [parsing thread] Waits for the next block; nothing after the last.
  std::optional<Block> take_full();
  void give_empty(Block block);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Block> empty_;
  std::deque<Block> full_;
  bool finished_ = false;
};

}  // namespace gpudiag::kineto_file
