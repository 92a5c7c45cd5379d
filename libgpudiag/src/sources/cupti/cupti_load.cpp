// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/cupti_load.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fmt/format.h"

namespace gpudiag {
namespace {

// Newest first. CUPTI of CUDA 12.x has its year-like soname too, so the plain name comes last.
constexpr std::array kSonames{"libcupti.so.14", "libcupti.so.13", "libcupti.so.12", "libcupti.so"};
constexpr int kOpen = RTLD_LAZY | RTLD_LOCAL;

/// Full paths of loaded libraries whose file name begins with `stem`.
std::vector<std::string> loaded_files(std::string_view stem) {
  struct Search {
    std::string_view stem;
    std::vector<std::string> found;
  } search{stem, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& into = *static_cast<Search*>(data);
        const std::string_view path{info->dlpi_name != nullptr ? info->dlpi_name : ""};
        if (path.substr(path.rfind('/') + 1).starts_with(into.stem)) into.found.emplace_back(path);
        return 0;
      },
      &search);
  return search.found;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

/// Where a toolkit or a wheel keeps CUPTI, seen from its runtime library.
std::vector<std::string> likely_folders() {
  std::vector<std::string> folders;
  for (const std::string& runtime : loaded_files("libcudart.so")) {
    const std::string lib = folder_of(runtime);
    folders.insert(folders.end(), {lib, lib + "/../extras/CUPTI/lib64", lib + "/../../cuda_cupti/lib"});
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable))
      folders.insert(folders.end(), {std::string{home} + "/extras/CUPTI/lib64", std::string{home} + "/lib64"});
  folders.insert(folders.end(), {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"});
  return folders;
}

void* open_cupti(const std::string& path, std::string& from) {
  const auto attempt = [&](const std::string& name, int flags) -> void* {
    void* handle = dlopen(name.c_str(), flags);
    if (handle != nullptr) from = name;
    return handle;
  };
  for (const std::string& loaded : loaded_files("libcupti.so"))
    if (void* handle = attempt(loaded, kOpen | RTLD_NOLOAD)) return handle;
  if (!path.empty()) return attempt(path, kOpen);
  for (const char* soname : kSonames)
    if (void* handle = attempt(soname, kOpen)) return handle;
  for (const std::string& folder : likely_folders())
    for (const char* soname : kSonames)
      if (void* handle = attempt(folder + "/" + soname, kOpen)) return handle;
  return nullptr;
}

template <typename Function>
void resolve(void* library, const char* name, Function& into) {
  into = reinterpret_cast<Function>(dlsym(library, name));
}

CuptiTable fill_table(void* library) {
  CuptiTable table;
  resolve(library, "cuptiActivityRegisterCallbacks", table.register_callbacks);
  resolve(library, "cuptiActivityEnable", table.enable);
  resolve(library, "cuptiActivityDisable", table.disable);
  resolve(library, "cuptiActivityFlushAll", table.flush_all);
  resolve(library, "cuptiActivityGetNextRecord", table.next_record);
  resolve(library, "cuptiGetTimestamp", table.timestamp);
  resolve(library, "cuptiActivityGetNumDroppedRecords", table.dropped_records);
  resolve(library, "cuptiGetVersion", table.version);
  resolve(library, "cuptiGetResultString", table.result_string);
  resolve(library, "cuptiGetCallbackName", table.callback_name);
  resolve(library, "cuptiSetThreadIdType", table.set_thread_id_type);
  resolve(library, "cuptiGetThreadIdType", table.get_thread_id_type);
  resolve(library, "cuptiActivityGetAttribute", table.get_attribute);
  resolve(library, "cuptiActivitySetAttribute", table.set_attribute);
  resolve(library, "cuptiActivityEnableRuntimeApi", table.enable_runtime_api);
  resolve(library, "cuptiActivityEnableDriverApi", table.enable_driver_api);
  resolve(library, "cuptiSubscribe", table.subscribe);
  resolve(library, "cuptiSubscribe_v2", table.subscribe_v2);
  resolve(library, "cuptiUnsubscribe", table.unsubscribe);
  resolve(library, "cuptiEnableCallback", table.enable_callback);
  return table;
}

}  // namespace

bool driver_loaded() { return !loaded_files("libcuda.so").empty(); }

bool driver_present() {
  if (driver_loaded()) return true;
  return dlopen("libcuda.so.1", kOpen) != nullptr;  // kept: the driver does not like to be unloaded
}

Result<CuptiTable> load_cupti(const std::string& path) {
  std::string from;
  void* library = open_cupti(path, from);
  if (library == nullptr) {
    if (!path.empty())
      return Error{fmt::format("GPUDIAG_CUPTI={}: cannot be loaded; unset it or name a libcupti.so", path)};
    return Error{"no libcupti.so of CUDA 12 or newer on the library path or beside the CUDA runtime; name one by "
                 "GPUDIAG_CUPTI"};
  }
  CuptiTable table = fill_table(library);
  table.path = from;
  if (!table.complete())
    return Error{fmt::format("{} lacks functions of CUDA 12; name a newer libcupti.so by GPUDIAG_CUPTI", from)};
  if (table.version != nullptr) table.version(&table.api_version);
  return table;
}

std::string describe(const CuptiTable& cupti, CUptiResult result) {
  const char* text = nullptr;
  if (cupti.result_string == nullptr || cupti.result_string(result, &text) != CUPTI_SUCCESS || text == nullptr)
    return fmt::format("{}", static_cast<int>(result));
  return fmt::format("{} ({})", static_cast<int>(result), text);
}

}  // namespace gpudiag
