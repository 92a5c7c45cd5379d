// SPDX-License-Identifier: Apache-2.0
//
// Kernels of cuBLAS: which one a product of matrices runs, and how long it takes.
//
// exported function → **launch** → cudaLaunchKernel of the simulated runtime
#pragma once

#include <cstdint>

#include "cublas/abi.hpp"

namespace simgpu::cublas {

// C (m × n) = A (m × k) · B (k × n), `batch` times.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  Operation trans_a = 0;
  Operation trans_b = 0;
  cudaDataType_t type = CUDA_R_32F;  // of A and B
  bool tf32 = false;                 // 32-bit products on tensor cores
};

// Both launch on `stream` and return kExecutionFailed where the runtime refuses.
Status launch_product(const Product& product, cudaStream_t stream);
// A kernel that is bound by memory, such as gemv or dot. `name` is mangled, of static storage.
Status launch_streaming(const char* name, double bytes, cudaStream_t stream);

// Bytes of an element; 4 for types not known.
std::size_t element_bytes(cudaDataType_t type);

// Duration of a product on the simulated device, ns: the longer of what the arithmetic takes with
// the last wave of tiles partly empty, and what the memory takes.
double product_ns(const Product& product, std::int64_t tile_m, std::int64_t tile_n);

}  // namespace simgpu::cublas
