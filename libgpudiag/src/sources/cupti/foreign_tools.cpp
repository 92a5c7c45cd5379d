// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/foreign_tools.hpp"

#include <link.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace gpudiag {
namespace {

struct Sign {
  std::string_view text;  ///< a variable's name, or how a loaded library's file name begins
  std::string_view tool;
};

constexpr std::array kVariables{
    Sign{"NSYS_PROFILING_SESSION_ID", "Nsight Systems"},
    Sign{"NSYS_TARGET_STD_REDIRECT_ACTIVE", "Nsight Systems"},
    Sign{"NV_NSIGHT_INJECTION_PORT_BASE", "Nsight Compute"},
    Sign{"NV_COMPUTE_PROFILER_PERFWORKS_DIR", "Nsight Compute"},
    Sign{"NV_SANITIZER_INJECTION_PORT_BASE", "Compute Sanitizer"},
};

constexpr std::array kLibraries{
    Sign{"libToolsInjection", "Nsight Systems"},
    Sign{"libInterceptorInjection", "Nsight Compute"},
    Sign{"libcuda-injection", "Nsight Compute"},
    Sign{"libTreeLauncherTargetInjection", "Nsight Compute"},
    Sign{"libsanitizer-collection", "Compute Sanitizer"},
    Sign{"libInterceptorInjectionTarget", "Compute Sanitizer"},
};

/// The first loaded library whose file name begins with one of `signs`; its tool, or "".
template <std::size_t N>
std::string_view loaded_sign(const std::array<Sign, N>& signs) {
  struct Search {
    const std::array<Sign, N>& signs;
    std::string_view tool;
  } search{signs, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& into = *static_cast<Search*>(data);
        std::string_view file{info->dlpi_name != nullptr ? info->dlpi_name : ""};
        file = file.substr(file.rfind('/') + 1);
        for (const Sign& sign : into.signs)
          if (file.starts_with(sign.text)) into.tool = sign.tool;
        return into.tool.empty() ? 0 : 1;
      },
      &search);
  return search.tool;
}

}  // namespace

std::string foreign_tool() {
  for (const Sign& sign : kVariables)
    if (std::getenv(std::string{sign.text}.c_str()) != nullptr) return std::string{sign.tool};
  return std::string{loaded_sign(kLibraries)};
}

bool torch_loaded() {
  static constexpr std::array kTorch{Sign{"libtorch", "torch"}, Sign{"libc10", "torch"}};
  return !loaded_sign(kTorch).empty();
}

std::string nvtx_injection() {
  const char* variable = std::getenv("NVTX_INJECTION64_PATH");
  const std::string_view path{variable != nullptr ? variable : ""};
  return std::string{path.substr(path.rfind('/') + 1)};
}

bool nvtx_leads_to_cupti() { return nvtx_injection().starts_with("libcupti.so"); }

}  // namespace gpudiag
