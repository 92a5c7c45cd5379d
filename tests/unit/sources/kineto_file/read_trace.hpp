// SPDX-License-Identifier: Apache-2.0
// Reads a literal trace and keeps the records of its main process.
#pragma once

#include <string>
#include <string_view>

#include "sources/kineto_file/kineto_trace.hpp"
#include "trace_file.hpp"
#include "unit/sources/recorded/read_records.hpp"

namespace gpudiag::testing {

class ReadTrace : public ReadRecords {
 public:
  explicit ReadTrace(std::string_view content) : ReadRecords{read_kineto(TraceFile{content}.path())} {}
};

/// A launch and its kernel, most tests' smallest trace: events without brackets.
inline const std::string kLaunchAndKernel = R"json(
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100,
   "ts": 1000.000, "dur": 5.5, "args": {"External id": 77, "cbid": 211, "correlation": 42}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 7, "ts": 1010.250, "dur": 20.125,
   "args": {"External id": 77, "device": 1, "context": 3, "stream": 7, "correlation": 42,
            "grid": [13, 2, 1], "block": [256, 1, 1]}})json";

}  // namespace gpudiag::testing
