// SPDX-License-Identifier: Apache-2.0
#include "sources/api_class.hpp"

#include <algorithm>
#include <array>

namespace gpudiag {
namespace {

struct Entry {
  std::string_view name;  ///< without the `cuda` or `cu` it begins with
  ApiClass api;
  bool never_blocks = false;
};

using enum ApiClass;

// Virtual memory calls (MemCreate, MemMap, …) are what torch's expandable segments allocate with;
// only giving memory back waits for the device there.
constexpr auto kRuntime = [] {
  auto table = std::to_array<Entry>({
      {"DeviceSynchronize", kDeviceSync},
      {"EventQuery", kQuery, true},
      {"EventRecord", kEventRecord, true},
      {"EventRecordWithFlags", kEventRecord, true},
      {"EventSynchronize", kEventSync},
      {"Free", kFree},
      {"FreeArray", kFree},
      {"FreeAsync", kPoolFree, true},
      {"FreeHost", kHostFree},
      {"FreeMipmappedArray", kFree},
      {"GetFuncBySymbol", kModule},
      {"GetKernel", kModule},
      {"GraphExecUpdate", kInstantiate},
      {"GraphInstantiate", kInstantiate},
      {"GraphInstantiateWithFlags", kInstantiate},
      {"GraphInstantiateWithParams", kInstantiate},
      {"GraphLaunch", kGraphLaunch},
      {"GraphUpload", kInstantiate},
      {"HostAlloc", kHostMalloc},
      {"HostRegister", kHostMalloc},
      {"HostUnregister", kHostFree},
      {"Launch", kLaunch},
      {"LaunchCooperativeKernel", kLaunch},
      {"LaunchCooperativeKernelMultiDevice", kLaunch},
      {"LaunchKernel", kLaunch},
      {"LaunchKernelExC", kLaunch},
      {"LibraryGetKernel", kModule},
      {"LibraryLoadData", kModule},
      {"LibraryLoadFromFile", kModule},
      {"LibraryUnload", kModule},
      {"Malloc", kMalloc},
      {"Malloc3D", kMalloc},
      {"Malloc3DArray", kMalloc},
      {"MallocArray", kMalloc},
      {"MallocAsync", kPoolMalloc, true},
      {"MallocFromPoolAsync", kPoolMalloc, true},
      {"MallocHost", kHostMalloc},
      {"MallocManaged", kMalloc},
      {"MallocMipmappedArray", kMalloc},
      {"MallocPitch", kMalloc},
      {"StreamBeginCapture", kCapture, true},
      {"StreamBeginCaptureToGraph", kCapture, true},
      {"StreamEndCapture", kCapture, true},
      {"StreamQuery", kQuery, true},
      {"StreamSynchronize", kStreamSync},
      {"StreamWaitEvent", kStreamWait, true},
      {"ThreadSynchronize", kDeviceSync},
  });
  std::ranges::sort(table, {}, &Entry::name);
  return table;
}();

constexpr auto kDriver = [] {
  auto table = std::to_array<Entry>({
      {"Array3DCreate", kMalloc},
      {"ArrayCreate", kMalloc},
      {"ArrayDestroy", kFree},
      {"CtxSynchronize", kDeviceSync},
      {"EventQuery", kQuery, true},
      {"EventRecord", kEventRecord, true},
      {"EventRecordWithFlags", kEventRecord, true},
      {"EventSynchronize", kEventSync},
      {"GraphExecUpdate", kInstantiate},
      {"GraphInstantiate", kInstantiate},
      {"GraphInstantiateWithFlags", kInstantiate},
      {"GraphInstantiateWithParams", kInstantiate},
      {"GraphLaunch", kGraphLaunch},
      {"GraphUpload", kInstantiate},
      {"Launch", kLaunch},
      {"LaunchCooperativeKernel", kLaunch},
      {"LaunchCooperativeKernelMultiDevice", kLaunch},
      {"LaunchGrid", kLaunch},
      {"LaunchGridAsync", kLaunch},
      {"LaunchKernel", kLaunch},
      {"LaunchKernelEx", kLaunch},
      {"LibraryGetKernel", kModule},
      {"LibraryGetModule", kModule},
      {"LibraryLoadData", kModule},
      {"LibraryLoadFromFile", kModule},
      {"LibraryUnload", kModule},
      {"LinkComplete", kModule},
      {"MemAddressFree", kFree, true},
      {"MemAddressReserve", kMalloc, true},
      {"MemAlloc", kMalloc},
      {"MemAllocAsync", kPoolMalloc, true},
      {"MemAllocFromPoolAsync", kPoolMalloc, true},
      {"MemAllocHost", kHostMalloc},
      {"MemAllocManaged", kMalloc},
      {"MemAllocPitch", kMalloc},
      {"MemCreate", kMalloc, true},
      {"MemFree", kFree},
      {"MemFreeAsync", kPoolFree, true},
      {"MemFreeHost", kHostFree},
      {"MemHostAlloc", kHostMalloc},
      {"MemHostRegister", kHostMalloc},
      {"MemHostUnregister", kHostFree},
      {"MemMap", kMalloc, true},
      {"MemRelease", kFree},
      {"MemSetAccess", kMalloc, true},
      {"MemUnmap", kFree},
      {"MipmappedArrayCreate", kMalloc},
      {"ModuleGetFunction", kModule},
      {"ModuleGetGlobal", kModule},
      {"ModuleLoad", kModule},
      {"ModuleLoadData", kModule},
      {"ModuleLoadDataEx", kModule},
      {"ModuleLoadFatBinary", kModule},
      {"ModuleUnload", kModule},
      {"StreamBeginCapture", kCapture, true},
      {"StreamBeginCaptureToGraph", kCapture, true},
      {"StreamEndCapture", kCapture, true},
      {"StreamQuery", kQuery, true},
      {"StreamSynchronize", kStreamSync},
      {"StreamWaitEvent", kStreamWait, true},
  });
  std::ranges::sort(table, {}, &Entry::name);
  return table;
}();

/// Without leading underscores and without what follows the first one inside.
std::string_view base_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name.substr(0, name.find('_'));
}

/// Some thirty forms of copying and filling differ in what they copy, not in how they wait.
bool find_family(std::string_view name, ApiClass& api) {
  if (name.starts_with("Memcpy")) {
    api = name.find("Async") == name.npos ? kMemcpy : kMemcpyAsync;
    return true;
  }
  if (name.starts_with("Memset")) {
    api = kMemset;
    return true;
  }
  return false;
}

template <std::size_t N>
ApiTraits find(const std::array<Entry, N>& table, std::string_view name, std::uint16_t flags) {
  ApiClass family = kOther;
  if (find_family(name, family)) return {family, flags};
  const auto found = std::ranges::lower_bound(table, name, {}, &Entry::name);
  if (found == table.end() || found->name != name) return {kOther, flags};
  if (found->never_blocks) flags |= record_flag::kBlocksNever;
  return {found->api, flags};
}

}  // namespace

ApiTraits api_traits(std::string_view name) {
  name = base_name(name);
  if (name.starts_with("cuda")) return find(kRuntime, name.substr(4), 0);
  if (name.starts_with("cu")) return find(kDriver, name.substr(2), record_flag::kDriverApi);
  return {};
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
