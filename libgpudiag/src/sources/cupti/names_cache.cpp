// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/names_cache.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "sources/text.hpp"

namespace gpudiag {
namespace {

// Template kernels of some libraries have names of 10 kB; the beginning tells them apart.
constexpr std::size_t kNameKept = 1000;
// Pointers of unloaded modules stay behind; a job that loads for ever must not make us grow.
constexpr std::size_t kPointersKept = 65'536;

}  // namespace

std::string demangled(const char* symbol) {
  if (std::strncmp(symbol, "_Z", 2) != 0) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text{abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free};
  return status == 0 && text ? text.get() : symbol;
}

NameId KernelNames::of(const char* symbol) {
  if (symbol == nullptr) return kNoName;
  if (const auto found = kept_.find(symbol); found != kept_.end()) {
    if (found->second.symbol == symbol) return found->second.id;
    kept_.erase(found);
  }
  if (kept_.size() >= kPointersKept) kept_.clear();
  std::string text = demangled(symbol);
  if (text.size() > kNameKept) text.resize(kNameKept);
  const NameId id = names_.intern(is_clean_text(text) ? text : repaired_text(text));
  kept_.emplace(symbol, Kept{symbol, id});
  return id;
}

}  // namespace gpudiag
