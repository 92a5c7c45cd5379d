// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of cuBLASLt that are modelled; all others come from stubs/.
//
// Descriptors are opaque to programs: they are made and changed by functions only. Attributes that
// say nothing about what runs or for how long (epilogues, scales, alignments) are accepted.
#include <cstring>

#include "cublas/gemm.hpp"

using namespace simgpu::cublas;

namespace {

struct Layout {
  cudaDataType_t type;
  std::uint64_t rows;
  std::uint64_t columns;
  std::int32_t batch;
};

struct Matmul {
  int compute_type;
  Operation trans_a;
  Operation trans_b;
};

struct Preference {
  std::uint64_t unused;
};

template <typename T>
Status assign(T& target, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof target) return kInvalidValue;
  std::memcpy(&target, value, bytes);
  return kSuccess;
}

template <typename T>
Status destroy(T* object) {
  delete object;
  return kSuccess;
}

Product product_of(const Matmul& matmul, const Layout& a, const Layout& b) {
  Product product;
  product.trans_a = matmul.trans_a;
  product.trans_b = matmul.trans_b;
  product.m = static_cast<std::int64_t>(matmul.trans_a != 0 ? a.columns : a.rows);
  product.k = static_cast<std::int64_t>(matmul.trans_a != 0 ? a.rows : a.columns);
  product.n = static_cast<std::int64_t>(matmul.trans_b != 0 ? b.rows : b.columns);
  product.batch = a.batch;
  product.type = a.type;
  product.tf32 = matmul.compute_type == kCompute32FFastTf32 ||
                 matmul.compute_type == kCompute32FFast16F ||
                 matmul.compute_type == kCompute32FFast16BF;
  return product;
}

}  // namespace

SIMGPU_EXPORT std::size_t cublasLtGetVersion();
SIMGPU_EXPORT Status cublasLtMatrixLayoutCreate(Layout** layout, cudaDataType_t type,
                                                std::uint64_t rows, std::uint64_t columns,
                                                std::int64_t leading);
SIMGPU_EXPORT Status cublasLtMatrixLayoutDestroy(Layout* layout);
SIMGPU_EXPORT Status cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute,
                                                      const void* value, std::size_t bytes);
SIMGPU_EXPORT Status cublasLtMatmulDescCreate(Matmul** matmul, int compute_type,
                                              cudaDataType_t scale_type);
SIMGPU_EXPORT Status cublasLtMatmulDescDestroy(Matmul* matmul);
SIMGPU_EXPORT Status cublasLtMatmulDescSetAttribute(Matmul* matmul, int attribute,
                                                    const void* value, std::size_t bytes);
SIMGPU_EXPORT Status cublasLtMatmulPreferenceCreate(Preference** preference);
SIMGPU_EXPORT Status cublasLtMatmulPreferenceDestroy(Preference* preference);
SIMGPU_EXPORT Status cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute,
                                                          const void* value, std::size_t bytes);
SIMGPU_EXPORT Status cublasLtMatmulAlgoGetHeuristic(void* handle, const Matmul* matmul,
                                                    const Layout* a, const Layout* b,
                                                    const Layout* c, const Layout* d,
                                                    const Preference* preference, int wanted,
                                                    HeuristicResult* results, int* found);
SIMGPU_EXPORT Status cublasLtMatmul(void* handle, const Matmul* matmul, const void* alpha,
                                    const void* a, const Layout* a_layout, const void* b,
                                    const Layout* b_layout, const void* beta, const void* c,
                                    const Layout* c_layout, void* d, const Layout* d_layout,
                                    const Algorithm* algorithm, void* workspace,
                                    std::size_t workspace_bytes, cudaStream_t stream);

std::size_t cublasLtGetVersion() {
  return 130000;
}

Status cublasLtMatrixLayoutCreate(Layout** layout, cudaDataType_t type, std::uint64_t rows,
                                  std::uint64_t columns, std::int64_t) {
  if (layout == nullptr) return kInvalidValue;
  *layout = new Layout{type, rows, columns, 1};
  return kSuccess;
}

Status cublasLtMatrixLayoutDestroy(Layout* layout) {
  return destroy(layout);
}

Status cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value,
                                        std::size_t bytes) {
  if (layout == nullptr) return kInvalidValue;
  switch (attribute) {
    case kLayoutType:
      return assign(layout->type, value, bytes);
    case kLayoutRows:
      return assign(layout->rows, value, bytes);
    case kLayoutColumns:
      return assign(layout->columns, value, bytes);
    case kLayoutBatchCount:
      return assign(layout->batch, value, bytes);
    default:
      return value == nullptr ? kInvalidValue : kSuccess;
  }
}

Status cublasLtMatmulDescCreate(Matmul** matmul, int compute_type, cudaDataType_t) {
  if (matmul == nullptr) return kInvalidValue;
  *matmul = new Matmul{compute_type, 0, 0};
  return kSuccess;
}

Status cublasLtMatmulDescDestroy(Matmul* matmul) {
  return destroy(matmul);
}

Status cublasLtMatmulDescSetAttribute(Matmul* matmul, int attribute, const void* value,
                                      std::size_t bytes) {
  if (matmul == nullptr) return kInvalidValue;
  if (attribute == kMatmulTransA) return assign(matmul->trans_a, value, bytes);
  if (attribute == kMatmulTransB) return assign(matmul->trans_b, value, bytes);
  return value == nullptr ? kInvalidValue : kSuccess;
}

Status cublasLtMatmulPreferenceCreate(Preference** preference) {
  if (preference == nullptr) return kInvalidValue;
  *preference = new Preference{};
  return kSuccess;
}

Status cublasLtMatmulPreferenceDestroy(Preference* preference) {
  return destroy(preference);
}

Status cublasLtMatmulPreferenceSetAttribute(Preference* preference, int, const void* value,
                                            std::size_t) {
  return preference == nullptr || value == nullptr ? kInvalidValue : kSuccess;
}

// There is one algorithm for everything, and it needs no workspace.
Status cublasLtMatmulAlgoGetHeuristic(void*, const Matmul* matmul, const Layout* a,
                                      const Layout* b, const Layout*, const Layout*,
                                      const Preference*, int wanted, HeuristicResult* results,
                                      int* found) {
  if (matmul == nullptr || a == nullptr || b == nullptr || results == nullptr || found == nullptr ||
      wanted < 1) {
    return kInvalidValue;
  }
  results[0] = HeuristicResult{};
  results[0].algorithm.data[0] = 1;
  results[0].waves = 1.0F;
  *found = 1;
  return kSuccess;
}

Status cublasLtMatmul(void*, const Matmul* matmul, const void*, const void*, const Layout* a,
                      const void*, const Layout* b, const void*, const void*, const Layout*, void*,
                      const Layout*, const Algorithm*, void*, std::size_t, cudaStream_t stream) {
  if (matmul == nullptr || a == nullptr || b == nullptr) return kInvalidValue;
  return launch_product(product_of(*matmul, *a, *b), stream);
}
