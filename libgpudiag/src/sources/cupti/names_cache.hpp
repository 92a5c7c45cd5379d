// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Kernel and function names as CUPTI gives them, interned.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/names.hpp"
#include "sources/api_class.hpp"

namespace gpudiag {

/// Kernel names by pointer: the pointer is stable only until its module is unloaded, so a hit is
/// compared with what was kept. Names are demangled and repaired. Drain thread.
class KernelNames {
 public:
  explicit KernelNames(NameTable& names) : names_{names} {}
  NameId of(const char* symbol);
  void clear() { kept_.clear(); }

 private:
  struct Kept {
    std::string symbol;
    NameId id;
  };
  NameTable& names_;
  std::unordered_map<const char*, Kept> kept_;
};

/// A symbol as people read it; itself where it is not mangled.
std::string demangled(const char* symbol);

}  // namespace gpudiag
