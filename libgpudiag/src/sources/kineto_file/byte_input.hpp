// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// The bytes of a file, inflated where it is gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "record/result.hpp"

namespace gpudiag::kineto_file {

/// Not thread-safe: one thread reads.
class ByteInput {
 public:
  virtual ~ByteInput() = default;

  /// Fills `into` as far as the input goes; less than asked for means that it is at its end.
  virtual std::size_t read(std::span<char> into) = 0;
  /// The input ended before its own end mark, or could not be read on.
  virtual bool damaged() const { return false; }
  /// Bytes of the file consumed so far.
  virtual std::uint64_t consumed() const = 0;
};

/// Opens `path`, gzip or plain by its first bytes, not by its name. Fails where it cannot be
/// opened.
Result<std::unique_ptr<ByteInput>> open_input(const std::filesystem::path& path);

}  // namespace gpudiag::kineto_file
