// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace of torch.profiler, through reader, sanitizer and engine. Whatever they are: no
// crash, no hang, records in order and with believable times, and each ledger's identity to the
// nanosecond.
#include <cstdint>

#include "checks.hpp"
#include "sources/kineto_file/kineto_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpudiag;
  if (const auto trace = read_kineto(fuzz::file_with(data, size))) fuzz::check(*trace);
  return 0;
}
