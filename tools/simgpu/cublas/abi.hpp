// SPDX-License-Identifier: Apache-2.0
//
// As much of the binary interface of cuBLAS 13 as the stand-in serves: values and layouts that
// programs were compiled with. CUDA toolkits need not have cuBLAS' headers, so it stands here.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::cublas {

using Status = int;
constexpr Status kSuccess = 0;
constexpr Status kNotInitialised = 1;
constexpr Status kInvalidValue = 7;
constexpr Status kExecutionFailed = 13;

using Operation = int;  // 0 as it is, 1 transposed, 2 conjugate transposed

// cublasComputeType_t
enum ComputeType : int {
  kCompute16F = 64,
  kCompute32F = 68,
  kCompute64F = 70,
  kCompute32I = 72,
  kCompute32FFast16F = 74,
  kCompute32FFast16BF = 75,
  kCompute32FFastTf32 = 77
};

// cublasMath_t, as far as it says something about speed.
constexpr int kTf32MathMode = 3;

constexpr int kPointerModeHost = 0;

// cublasLtMatrixLayoutAttribute_t
enum LayoutAttribute : int {
  kLayoutType = 0,
  kLayoutRows = 2,
  kLayoutColumns = 3,
  kLayoutBatchCount = 5
};

// cublasLtMatmulDescAttributes_t
enum MatmulAttribute : int { kMatmulTransA = 3, kMatmulTransB = 4 };

// cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t
struct Algorithm {
  std::uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

}  // namespace simgpu::cublas
