// SPDX-License-Identifier: Apache-2.0
//
// As much of the binary interface of NCCL 2.30 as the stand-in serves: values and layouts that
// programs were compiled with. CUDA toolkits have no nccl.h, so it stands here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::nccl {

enum Result : int {
  kSuccess = 0,
  kCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7
};

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11
};
constexpr int kDataTypes = 12;

// Values from kPreMulSum on are operations made by ncclRedOpCreatePreMulSum.
enum Reduction : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4, kPreMulSum = 5 };

struct UniqueId {
  char internal[128];
};

constexpr int kVersion = 23007;
constexpr int kSplitNoColor = -1;

}  // namespace simgpu::nccl
