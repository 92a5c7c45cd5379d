// SPDX-License-Identifier: Apache-2.0
//
// Finding driver functions at run time.
#include "driver/lookup.hpp"

#include <cstring>

#include "driver/entry.hpp"

namespace {

// The newest form that is no newer than `version`; null where there is none.
void* find_symbol(const char* name, int version, bool per_thread, bool& name_known) {
  const DriverSymbol* best = nullptr;
  for (std::size_t i = 0; i < kDriverSymbolCount; ++i) {
    const DriverSymbol& symbol = kDriverSymbols[i];
    if (std::strcmp(symbol.name, name) != 0) continue;
    name_known = true;
    if (symbol.cuda_version > version || (symbol.per_thread && !per_thread)) continue;
    const bool better =
        best == nullptr || symbol.per_thread > best->per_thread ||
        (symbol.per_thread == best->per_thread && symbol.cuda_version >= best->cuda_version);
    if (better) best = &symbol;
  }
  return best == nullptr ? nullptr : best->address;
}

CUresult look_up(const char* name, void** out, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool name_known = false;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  *out = find_symbol(name, version, per_thread, name_known);
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
  if (*out == nullptr) {
    result = name_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  if (status != nullptr) *status = result;
  return *out == nullptr && status == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace

SIMGPU_DRIVER(cuGetProcAddress_v2) {
  return look_up(p.symbol, p.pfn, p.cudaVersion, p.flags, p.symbolStatus);
}

SIMGPU_DRIVER(cuGetProcAddress) {
  return look_up(p.symbol, p.pfn, p.cudaVersion, p.flags, nullptr);
}

// Undocumented tables; what needs them cannot run here and must hear so.
SIMGPU_DRIVER(cuGetExportTable) {
  return CUDA_ERROR_NOT_FOUND;
}
