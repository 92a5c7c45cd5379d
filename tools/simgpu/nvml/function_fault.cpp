// SPDX-License-Identifier: Apache-2.0
#include "function_fault.hpp"

#include <cstdint>
#include <ctime>

#include "../core/faults.hpp"

namespace simgpu {
namespace {

void sleep_ms(std::int64_t ms) {
  timespec time{ms / 1'000, ms % 1'000 * 1'000'000};
  while (nanosleep(&time, &time) != 0) {
  }
}

}  // namespace

int function_fault(const char* function, int default_error, std::string_view name) {
  if (!any_faults()) {
    return 0;
  }
  for (Fault* fault : find_faults(function)) {
    if (!fault->fires(name)) {
      continue;
    }
    if (fault->has("delay_ms")) {
      sleep_ms(fault->number("delay_ms", 0));
      if (!fault->has("error")) {
        continue;
      }
    }
    return static_cast<int>(fault->number("error", default_error));
  }
  return 0;
}

}  // namespace simgpu
