// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of cuBLAS that are modelled; all others come from stubs/.
#include "cublas/gemm.hpp"

using namespace simgpu::cublas;

namespace {

constexpr std::uint32_t kHandleMagic = 0x424c4153;

struct Handle {
  std::uint32_t magic = kHandleMagic;
  cudaStream_t stream = nullptr;
  int math_mode = 0;
  int pointer_mode = kPointerModeHost;
};

bool valid(const Handle* handle) {
  return handle != nullptr && handle->magic == kHandleMagic;
}

bool allows_tf32(const Handle& handle, int compute_type) {
  return compute_type == kCompute32FFastTf32 || compute_type == kCompute32FFast16F ||
         compute_type == kCompute32FFast16BF || (handle.math_mode & 0xf) == kTf32MathMode;
}

Status multiply(const Handle* handle, Operation a, Operation b, std::int64_t m, std::int64_t n,
                std::int64_t k, std::int64_t batch, cudaDataType_t type,
                int compute_type = kCompute32F) {
  if (!valid(handle)) return kNotInitialised;
  Product product;
  product.m = m;
  product.n = n;
  product.k = k;
  product.batch = batch;
  product.trans_a = a;
  product.trans_b = b;
  product.type = type;
  product.tf32 = allows_tf32(*handle, compute_type);
  return launch_product(product, handle->stream);
}

Status gemv(const Handle* handle, Operation transposed, std::int64_t m, std::int64_t n,
            std::size_t element) {
  if (!valid(handle)) return kNotInitialised;
  if (m < 0 || n < 0) return kInvalidValue;
  const double bytes = static_cast<double>(m) * static_cast<double>(n);
  return launch_streaming(transposed != 0 ? "gemv2T_kernel_val" : "gemvNSP_kernel",
                          bytes * static_cast<double>(element), handle->stream);
}

// A sum over two vectors. With a result on the host the call waits for it, as cuBLAS does; the
// simulation does no maths, so it is zero.
Status dot(const Handle* handle, std::int64_t n, std::size_t element, void* result) {
  if (!valid(handle)) return kNotInitialised;
  if (n < 0 || result == nullptr) return kInvalidValue;
  const double bytes = 2.0 * static_cast<double>(n) * static_cast<double>(element);
  if (const Status status = launch_streaming("dot_kernel", bytes, handle->stream)) return status;
  if (const Status status = launch_streaming("reduce_1Block_kernel", 0.0, handle->stream)) {
    return status;
  }
  if (handle->pointer_mode != kPointerModeHost) return kSuccess;
  if (cudaStreamSynchronize(handle->stream) != cudaSuccess) return kExecutionFailed;
  for (std::size_t i = 0; i < element; ++i) static_cast<char*>(result)[i] = 0;
  return kSuccess;
}

}  // namespace

// --- handles -----------------------------------------------------------------------------------

SIMGPU_EXPORT Status cublasCreate_v2(Handle** handle);
SIMGPU_EXPORT Status cublasDestroy_v2(Handle* handle);
SIMGPU_EXPORT Status cublasSetStream_v2(Handle* handle, cudaStream_t stream);
SIMGPU_EXPORT Status cublasSetWorkspace_v2(Handle* handle, void* workspace, std::size_t bytes);
SIMGPU_EXPORT Status cublasSetMathMode(Handle* handle, int mode);
SIMGPU_EXPORT Status cublasGetMathMode(Handle* handle, int* mode);
SIMGPU_EXPORT Status cublasSetPointerMode_v2(Handle* handle, int mode);
SIMGPU_EXPORT Status cublasGetPointerMode_v2(Handle* handle, int* mode);
SIMGPU_EXPORT Status cublasSetSmCountTarget(Handle* handle, int count);

Status cublasCreate_v2(Handle** handle) {
  if (handle == nullptr) return kInvalidValue;
  // As the real one: it needs a device, and makes its context.
  if (cudaFree(nullptr) != cudaSuccess) return kNotInitialised;
  *handle = new Handle;
  return kSuccess;
}

Status cublasDestroy_v2(Handle* handle) {
  if (!valid(handle)) return kNotInitialised;
  handle->magic = 0;
  delete handle;
  return kSuccess;
}

Status cublasSetStream_v2(Handle* handle, cudaStream_t stream) {
  if (!valid(handle)) return kNotInitialised;
  handle->stream = stream;
  return kSuccess;
}

Status cublasSetWorkspace_v2(Handle* handle, void*, std::size_t) {
  return valid(handle) ? kSuccess : kNotInitialised;
}

Status cublasSetMathMode(Handle* handle, int mode) {
  if (!valid(handle)) return kNotInitialised;
  handle->math_mode = mode;
  return kSuccess;
}

Status cublasGetMathMode(Handle* handle, int* mode) {
  if (!valid(handle)) return kNotInitialised;
  if (mode == nullptr) return kInvalidValue;
  *mode = handle->math_mode;
  return kSuccess;
}

Status cublasSetPointerMode_v2(Handle* handle, int mode) {
  if (!valid(handle)) return kNotInitialised;
  handle->pointer_mode = mode;
  return kSuccess;
}

Status cublasGetPointerMode_v2(Handle* handle, int* mode) {
  if (!valid(handle)) return kNotInitialised;
  if (mode == nullptr) return kInvalidValue;
  *mode = handle->pointer_mode;
  return kSuccess;
}

Status cublasSetSmCountTarget(Handle* handle, int) {
  return valid(handle) ? kSuccess : kNotInitialised;
}

// --- products of one type, by letter -------------------------------------------------------------

#define SIMGPU_TYPED(letter, type)                                                                \
  SIMGPU_EXPORT Status cublas##letter##gemm_v2(Handle* h, Operation a, Operation b, int m, int n, \
                                               int k, const void*, const void*, int, const void*, \
                                               int, const void*, void*, int);                     \
  Status cublas##letter##gemm_v2(Handle* h, Operation a, Operation b, int m, int n, int k,        \
                                 const void*, const void*, int, const void*, int, const void*,    \
                                 void*, int) {                                                    \
    return multiply(h, a, b, m, n, k, 1, type);                                                   \
  }                                                                                               \
  SIMGPU_EXPORT Status cublas##letter##gemmStridedBatched(                                        \
      Handle* h, Operation a, Operation b, int m, int n, int k, const void*, const void*, int,    \
      long long, const void*, int, long long, const void*, void*, int, long long, int batch);     \
  Status cublas##letter##gemmStridedBatched(                                                      \
      Handle* h, Operation a, Operation b, int m, int n, int k, const void*, const void*, int,    \
      long long, const void*, int, long long, const void*, void*, int, long long, int batch) {    \
    return multiply(h, a, b, m, n, k, batch, type);                                               \
  }                                                                                               \
  SIMGPU_EXPORT Status cublas##letter##gemmBatched(                                               \
      Handle* h, Operation a, Operation b, int m, int n, int k, const void*, const void* const*,  \
      int, const void* const*, int, const void*, void* const*, int, int batch);                   \
  Status cublas##letter##gemmBatched(                                                             \
      Handle* h, Operation a, Operation b, int m, int n, int k, const void*, const void* const*,  \
      int, const void* const*, int, const void*, void* const*, int, int batch) {                  \
    return multiply(h, a, b, m, n, k, batch, type);                                               \
  }                                                                                               \
  SIMGPU_EXPORT Status cublas##letter##gemv_v2(Handle* h, Operation a, int m, int n, const void*, \
                                               const void*, int, const void*, int, const void*,   \
                                               void*, int);                                       \
  Status cublas##letter##gemv_v2(Handle* h, Operation a, int m, int n, const void*, const void*,  \
                                 int, const void*, int, const void*, void*, int) {                \
    return gemv(h, a, m, n, element_bytes(type));                                                 \
  }

SIMGPU_TYPED(S, CUDA_R_32F)
SIMGPU_TYPED(D, CUDA_R_64F)
SIMGPU_TYPED(C, CUDA_C_32F)
SIMGPU_TYPED(Z, CUDA_C_64F)

#define SIMGPU_DOT(name, type)                                                                   \
  SIMGPU_EXPORT Status name(Handle* h, int n, const void*, int, const void*, int, void* result); \
  Status name(Handle* h, int n, const void*, int, const void*, int, void* result) {              \
    return dot(h, n, element_bytes(type), result);                                               \
  }

SIMGPU_DOT(cublasSdot_v2, CUDA_R_32F)
SIMGPU_DOT(cublasDdot_v2, CUDA_R_64F)
SIMGPU_DOT(cublasCdotu_v2, CUDA_C_32F)
SIMGPU_DOT(cublasCdotc_v2, CUDA_C_32F)
SIMGPU_DOT(cublasZdotu_v2, CUDA_C_64F)
SIMGPU_DOT(cublasZdotc_v2, CUDA_C_64F)

// --- products of any type -------------------------------------------------------------------------

SIMGPU_EXPORT Status cublasDotEx(Handle* h, int n, const void*, cudaDataType_t x_type, int,
                                 const void*, cudaDataType_t, int, void* result, cudaDataType_t,
                                 cudaDataType_t);
SIMGPU_EXPORT Status cublasSgemmEx(Handle* h, Operation a, Operation b, int m, int n, int k,
                                   const float*, const void*, cudaDataType_t a_type, int,
                                   const void*, cudaDataType_t, int, const float*, void*,
                                   cudaDataType_t, int);
SIMGPU_EXPORT Status cublasGemmEx(Handle* h, Operation a, Operation b, int m, int n, int k,
                                  const void*, const void*, cudaDataType_t a_type, int,
                                  const void*, cudaDataType_t, int, const void*, void*,
                                  cudaDataType_t, int, int compute_type, int);
SIMGPU_EXPORT Status cublasGemmStridedBatchedEx(
    Handle* h, Operation a, Operation b, int m, int n, int k, const void*, const void*,
    cudaDataType_t a_type, int, long long, const void*, cudaDataType_t, int, long long,
    const void*, void*, cudaDataType_t, int, long long, int batch, int compute_type, int);

Status cublasDotEx(Handle* h, int n, const void*, cudaDataType_t x_type, int, const void*,
                   cudaDataType_t, int, void* result, cudaDataType_t, cudaDataType_t) {
  return dot(h, n, element_bytes(x_type), result);
}

Status cublasSgemmEx(Handle* h, Operation a, Operation b, int m, int n, int k, const float*,
                     const void*, cudaDataType_t a_type, int, const void*, cudaDataType_t, int,
                     const float*, void*, cudaDataType_t, int) {
  return multiply(h, a, b, m, n, k, 1, a_type);
}

Status cublasGemmEx(Handle* h, Operation a, Operation b, int m, int n, int k, const void*,
                    const void*, cudaDataType_t a_type, int, const void*, cudaDataType_t, int,
                    const void*, void*, cudaDataType_t, int, int compute_type, int) {
  return multiply(h, a, b, m, n, k, 1, a_type, compute_type);
}

Status cublasGemmStridedBatchedEx(Handle* h, Operation a, Operation b, int m, int n, int k,
                                  const void*, const void*, cudaDataType_t a_type, int, long long,
                                  const void*, cudaDataType_t, int, long long, const void*, void*,
                                  cudaDataType_t, int, long long, int batch, int compute_type,
                                  int) {
  return multiply(h, a, b, m, n, k, batch, a_type, compute_type);
}
