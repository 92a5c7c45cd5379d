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

std::string plain_api_name(std::string_view name) {
  // "_v7000", "_ptsz_v7000" and the like; never cut a leading underscore.
  const auto inner = name.find_first_not_of('_');
  if (inner == name.npos) return std::string{name};
  std::string_view plain = name;
  for (;;) {
    const auto at = plain.rfind('_');
    if (at == plain.npos || at <= inner) break;
    const std::string_view suffix = plain.substr(at + 1);
    const bool version = suffix.size() > 1 && suffix[0] == 'v' &&
                         suffix.find_first_not_of("0123456789", 1) == suffix.npos;
    if (!version && suffix != "ptsz" && suffix != "ptds") break;
    plain = plain.substr(0, at);
  }
  return std::string{plain};
}

}  // namespace gpudiag
