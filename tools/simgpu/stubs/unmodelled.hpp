// SPDX-License-Identifier: Apache-2.0
//
// Says which function of a vendor's library a program called that the simulation does not have.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace simgpu {

// Prints the name where SIMGPU_TELL_UNMODELLED is set. Silent otherwise: programs try out what a
// library can do, and take another way where it says no.
inline void tell_unmodelled(const char* function) {
  static const bool kTell = std::getenv("SIMGPU_TELL_UNMODELLED") != nullptr;
  if (kTell) std::fprintf(stderr, "simgpu: %s is not modelled and fails\n", function);
}

}  // namespace simgpu
