// SPDX-License-Identifier: Apache-2.0
#include "nccl_api.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

template <typename Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return;
  std::fprintf(stderr, "NCCL lacks %s\n", name);
  std::exit(1);
}

}  // namespace

Nccl::Nccl() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  look_up(library, "ncclGetUniqueId", get_unique_id);
  look_up(library, "ncclCommInitRank", comm_init_rank);
  look_up(library, "ncclCommDestroy", comm_destroy);
  look_up(library, "ncclAllReduce", all_reduce);
}

void nccl_check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s failed: %d\n", what, result);
  std::exit(1);
}
