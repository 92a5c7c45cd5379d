// SPDX-License-Identifier: Apache-2.0
#include "session/rank_files.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "fmt/format.h"

namespace gpudiag {
namespace {

// Of a session that never uses a GPU, or whose folder cannot be written.
constexpr std::size_t kMostWaiting = std::size_t{4} << 20;

std::int32_t numa_node_of(const std::string& pci) {
  std::ifstream in{"/sys/bus/pci/devices/" + pci + "/numa_node"};
  std::int32_t node = -1;
  return in >> node ? node : -1;
}

}  // namespace

DevicePlace place_of(DeviceId device) {
  DevicePlace place;
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return place;
  using Get = int (*)(int*, int);
  using GetText = int (*)(char*, int, int);
  const auto get = reinterpret_cast<Get>(dlsym(driver, "cuDeviceGet"));
  const auto ask = [&](const char* function, int handle) -> std::string {
    const auto call = reinterpret_cast<GetText>(dlsym(driver, function));
    char text[128] = {};
    return call != nullptr && call(text, sizeof text - 1, handle) == 0 ? text : "";
  };
  int handle = 0;
  if (get != nullptr && get(&handle, static_cast<int>(raw(device))) == 0) {
    place.name = ask("cuDeviceGetName", handle);
    place.pci = ask("cuDeviceGetPCIBusId", handle);
  }
  std::transform(place.pci.begin(), place.pci.end(), place.pci.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!place.pci.empty()) place.numa_node = numa_node_of(place.pci);
  return place;
}

RankFiles::OfDevice& RankFiles::of(DeviceId device) {
  std::unique_ptr<OfDevice>& made = devices_[device];
  if (made) return *made;
  if (devices_.size() == 1) first_ = device;
  made = std::make_unique<OfDevice>();
  RankIdentity who = who_;
  who.device = device;
  const DevicePlace place = place_ ? place_(device) : DevicePlace{};
  who.device_name = place.name;
  who.pci = place.pci;
  who.numa_node = place.numa_node;
  made->writer = std::make_unique<SummaryWriter>(who, [of = made.get()](std::string_view bytes) {
    if (of->failed || of->waiting.size() > kMostWaiting) return false;
    of->waiting += bytes;
    return true;
  });
  return *made;
}

void RankFiles::add(const IterationLedger& ledger, std::span<const CollectiveUse> uses,
                    std::span<const CollectiveInfo> abouts) {
  of(ledger.device).writer->add(rank_iteration_of(ledger), uses, abouts);
}

std::string RankFiles::flush(const std::string& stem) {
  std::string trouble;
  for (auto& [id, device] : devices_) {
    device->writer->flush();
    if (device->failed) device->waiting.clear();
    if (stem.empty() || device->failed || device->waiting.empty()) continue;
    const std::string path = id == first_ ? stem + ".ranks" : fmt::format("{}.dev{}.ranks", stem, raw(id));
    errno = 0;
    if (device->file.is_open() || device->file.open(path, true))
      device->failed = !device->file.append(device->waiting);
    else
      device->failed = true;
    if (device->failed) trouble = fmt::format("{}: cannot be written ({})", path, std::generic_category().message(errno));
    device->waiting.clear();
  }
  return trouble;
}

void RankFiles::finish() {
  for (auto& [id, device] : devices_) device->writer->finish();
}

}  // namespace gpudiag
