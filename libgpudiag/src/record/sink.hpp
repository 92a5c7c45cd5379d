// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// What every source writes to.
#pragma once

#include "record/record.hpp"

namespace gpudiag {

/// Takes records in the order in which a source delivers them, which need not be the order of time.
/// Called from one thread at a time.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void add(const Record& record) = 0;
};

}  // namespace gpudiag
