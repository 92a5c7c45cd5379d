// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources] -> record -> timeline -> attribution -> report.
// All records of a file, until it is known in which order they happened.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "record/record.hpp"

namespace gpudiag::recorded {

/// Grows in pieces: a single vector would need three times its size while it grows.
class RecordStore {
 public:
  std::size_t size() const { return size_; }

  Record& operator[](std::size_t i) { return pieces_[i / kPiece][i % kPiece]; }
  const Record& operator[](std::size_t i) const { return pieces_[i / kPiece][i % kPiece]; }

  /// Returns its index.
  std::size_t add(const Record& record) {
    if (size_ == pieces_.size() * kPiece) {
      pieces_.push_back(std::make_unique_for_overwrite<Record[]>(kPiece));
    }
    (*this)[size_] = record;
    return size_++;
  }

  template <typename Visit>
  void for_each(Visit visit) {
    for (std::size_t i = 0; i < size_; ++i) visit((*this)[i]);
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < size_; ++i) visit((*this)[i]);
  }

 private:
  static constexpr std::size_t kPiece = 1 << 10;
  std::vector<std::unique_ptr<Record[]>> pieces_;
  std::size_t size_ = 0;
};

}  // namespace gpudiag::recorded
