// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Names of ranges in a run without end. "iter 1", "iter 2", … would fill the table for ever, so names
// that differ in their digits alone share a bounded number of ids.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "record/names.hpp"

namespace gpudiag {

/// Drain thread.
class LiveNames {
 public:
  /// `reuse`: false keeps every name, for runs that are recorded (a recording names an id once; the
  /// table then grows no faster than the file).
  LiveNames(NameTable& names, bool reuse) : names_{names}, reuse_{reuse} {}

  /// The id of `text`. With reuse, of the names of one shape ("iter #") the newest kKept have ids of
  /// their own and the oldest one's id is taken for a new one; records live far shorter than that.
  NameId intern(std::string_view text);

  static constexpr std::size_t kKept = 4096;
  /// Beyond these, new shapes are all called "(other)".
  static constexpr std::size_t kShapes = 16'384;
  static constexpr std::size_t kTotal = 100'000;

 private:
  struct Shape {
    std::deque<NameId> ids;  // oldest first
  };
  Shape* shape_of(std::string_view text);

  NameTable& names_;
  bool reuse_;
  std::size_t given_ = 0;
  std::unordered_map<std::string, Shape> shapes_;
  std::string folded_;
};

}  // namespace gpudiag
