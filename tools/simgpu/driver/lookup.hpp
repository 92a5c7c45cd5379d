// SPDX-License-Identifier: Apache-2.0
//
// The table behind cuGetProcAddress; its contents are written by generate_entry_points.py.
#pragma once

#include <cstddef>

namespace simgpu {

// One form of a driver function: `name` as asked for, and the CUDA version that brought the form.
struct DriverSymbol {
  const char* name;
  int cuda_version;
  bool per_thread;  // the _ptsz or _ptds form
  void* address;
};

extern const DriverSymbol kDriverSymbols[];
extern const std::size_t kDriverSymbolCount;

}  // namespace simgpu
