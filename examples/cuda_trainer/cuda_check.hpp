// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

// Ends the program with a message when a CUDA call fails: a trainer has no use for going on.
inline void cuda_check(cudaError_t status, const char* what, const char* file, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(status));
  std::exit(1);
}

#define CUDA_CHECK(call) cuda_check((call), #call, __FILE__, __LINE__)
