// SPDX-License-Identifier: Apache-2.0
// What the tests of diagnoses share: how to look into one.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "case_job.hpp"

namespace gpudiag::testing {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Diagnosed : ::testing::Test {
  CaseJob job;

  const Diagnosis& diagnosis() const { return job.diagnosis(); }
  /// The finding of this rank, counted from 0; one without a cost where there are fewer.
  const Finding& finding(std::size_t place) const {
    static const Finding kNoFinding;
    const auto& all = diagnosis().findings;
    return place < all.size() ? all[place] : kNoFinding;
  }
  bool blames(FindingCause cause) const {
    for (const Finding& one : diagnosis().findings)
      if (one.cause == cause) return true;
    return false;
  }
  DurationNs charged(Cause cause) const { return job.summary().all.idle_of(cause); }
};

}  // namespace gpudiag::testing
