// SPDX-License-Identifier: Apache-2.0
//
// Which kernels cuBLAS launches and how long they take. Times are exact: the noise is off.
#include <gtest/gtest.h>

#include <cmath>

#include "cublas/abi.hpp"

using namespace simgpu::cublas;

extern "C" {
int cublasCreate_v2(void** handle);
int cublasDestroy_v2(void* handle);
int cublasSetStream_v2(void* handle, cudaStream_t stream);
int cublasSetMathMode(void* handle, int mode);
int cublasSgemm_v2(void* h, int a, int b, int m, int n, int k, const void*, const void*, int,
                   const void*, int, const void*, void*, int);
int cublasGemmEx(void* h, int a, int b, int m, int n, int k, const void*, const void*, int type,
                 int, const void*, int, int, const void*, void*, int, int, int compute, int);
int cublasSdot_v2(void* h, int n, const void*, int, const void*, int, void* result);
int cublasSgetrfBatched(void* h, int n, void* const*, int, int*, int*, int batch);
int cublasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading);
int cublasLtMatmulDescCreate(void** matmul, int compute, int scale);
int cublasLtMatmulDescSetAttribute(void* matmul, int attribute, const void* value,
                                   std::size_t bytes);
int cublasLtMatmulAlgoGetHeuristic(void*, const void* matmul, const void* a, const void* b,
                                   const void* c, const void* d, const void* preference,
                                   int wanted, HeuristicResult* results, int* found);
int cublasLtMatmul(void*, const void* matmul, const void*, const void*, const void* a, const void*,
                   const void* b, const void*, const void*, const void*, void*, const void*,
                   const void*, void*, std::size_t, cudaStream_t stream);
}

namespace {

class Cublas : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cublasCreate_v2(&handle), kSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cublasSetStream_v2(handle, stream), kSuccess);
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
  }
  int sgemm(int m, int n, int k) {
    return cublasSgemm_v2(handle, 0, 0, m, n, k, nullptr, nullptr, m, nullptr, k, nullptr, nullptr,
                          m);
  }
  // Simulated duration of what `launch` queues, in ns: behind a long kernel, so that the host's
  // speed does not count.
  template <typename Launch>
  double duration_ns(Launch&& launch) {
    EXPECT_EQ(sgemm(8192, 8192, 2048), kSuccess);
    cudaEventRecord(begin, stream);
    EXPECT_EQ(launch(), kSuccess);
    cudaEventRecord(end, stream);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    float ms = 0.0F;
    EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
    return std::round(static_cast<double>(ms) * 1e6);
  }

  void* handle = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

TEST_F(Cublas, AProductTakesWhatItsArithmeticTakes) {
  // 256 tiles of 64 × 64 are two waves of 132: 2 · 264 · 64 · 64 · 1024 operations at 50 TFLOP/s.
  EXPECT_NEAR(duration_ns([&] { return sgemm(1024, 1024, 1024); }), 1500 + 44292, 2);
}

TEST_F(Cublas, AThinProductTakesWhatItsMemoryTakes) {
  // 2 bytes of 4096 · 4096 + 2 · 4096 numbers at 2.4 TB/s.
  const auto product = [&] {
    return cublasGemmEx(handle, 0, 0, 4096, 1, 4096, nullptr, nullptr, CUDA_R_16BF, 4096, nullptr,
                        CUDA_R_16BF, 4096, nullptr, nullptr, CUDA_R_16BF, 4096, kCompute32F, 0);
  };
  EXPECT_NEAR(duration_ns(product), 1500 + 13988, 2);
}

TEST_F(Cublas, TensorCoresAreUsedWhereTheMathModeAllowsThem) {
  // 2 · 264 · 128 · 128 · 2048 operations, at 50 and at 300 TFLOP/s.
  const auto product = [&] { return sgemm(2048, 2048, 2048); };
  EXPECT_NEAR(duration_ns(product), 1500 + 354335, 2);
  ASSERT_EQ(cublasSetMathMode(handle, 3), kSuccess);
  EXPECT_NEAR(duration_ns(product), 1500 + 59056, 2);
}

TEST_F(Cublas, AnEmptyProductLaunchesNothing) {
  EXPECT_EQ(duration_ns([&] { return sgemm(0, 16, 16); }), 0);
}

TEST_F(Cublas, LtTakesTheShapeFromItsLayouts) {
  void* matmul = nullptr;
  void* a = nullptr;
  void* b = nullptr;
  const int transposed = 1;
  ASSERT_EQ(cublasLtMatmulDescCreate(&matmul, kCompute32F, CUDA_R_32F), kSuccess);
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(matmul, kMatmulTransA, &transposed, sizeof transposed),
            kSuccess);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 512, 1024, 512), kSuccess);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 512, 1024, 512), kSuccess);
  HeuristicResult result{};
  int found = 0;
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(nullptr, matmul, a, b, a, a, nullptr, 1, &result,
                                           &found),
            kSuccess);
  EXPECT_EQ(found, 1);
  const auto multiply = [&] {
    return cublasLtMatmul(nullptr, matmul, nullptr, nullptr, a, nullptr, b, nullptr, nullptr, a,
                          nullptr, a, nullptr, nullptr, 0, stream);
  };
  EXPECT_NEAR(duration_ns(multiply), 1500 + 22146, 2);  // half of 1024³ above
}

TEST_F(Cublas, ASumForTheHostWaitsForTheDevice) {
  float result = 1.0F;
  EXPECT_EQ(cublasSdot_v2(handle, 1024, nullptr, 1, nullptr, 1, &result), kSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(result, 0.0F);
}

TEST_F(Cublas, WhatIsNotModelledSaysSo) {
  EXPECT_EQ(cublasSgetrfBatched(handle, 4, nullptr, 4, nullptr, nullptr, 1), 15);
}

TEST_F(Cublas, WrongArgumentsAreRefused) {
  EXPECT_EQ(sgemm(-1, 16, 16), kInvalidValue);
  EXPECT_EQ(cublasSgemm_v2(nullptr, 0, 0, 1, 1, 1, nullptr, nullptr, 1, nullptr, 1, nullptr,
                           nullptr, 1),
            kNotInitialised);
}

}  // namespace
