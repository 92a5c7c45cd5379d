// SPDX-License-Identifier: Apache-2.0
//
// Copies and fills.
#include "runtime/entry.hpp"

namespace simgpu {
namespace {

cudaError_t copy(CopyWork work, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!work.is_async) {
    if (const int error = check_unsafe_call()) return as_error(error);
  }
  if (const int error = prepare_copy(work, static_cast<int>(kind))) return as_error(error);
  return with_stream(stream, [&](Stream& s) { return submit(s, work); });
}

cudaError_t copy_2d(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream,
                    bool is_async) {
  if (width > dst_pitch || width > src_pitch) return cudaErrorInvalidPitchValue;
  CopyWork work;
  work.dst = dst;
  work.src = src;
  work.width = width;
  work.height = height;
  work.dst_pitch = dst_pitch;
  work.src_pitch = src_pitch;
  work.is_async = is_async;
  return copy(work, kind, stream);
}

cudaError_t copy_3d(const cudaMemcpy3DParms* params, cudaStream_t stream, bool is_async) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CopyWork work;
  if (const cudaError_t error = copy_3d_work(*params, work)) return error;
  work.is_async = is_async;
  return copy(work, params->kind, stream);
}

// Only device addresses differ between a peer copy and any other.
cudaError_t copy_peer(void* dst, int dst_device, const void* src, int src_device, std::size_t bytes,
                      cudaStream_t stream, bool is_async) {
  if (!is_device(dst_device) || !is_device(src_device)) return cudaErrorInvalidDevice;
  return copy_linear(dst, src, bytes, cudaMemcpyDefault, stream, is_async);
}

cudaError_t fill(FillWork work, cudaStream_t stream) {
  if (const int error = prepare_fill(work)) return as_error(error);
  return with_stream(stream, [&](Stream& s) { return submit(s, work); });
}

cudaError_t fill_rows(void* dst, std::size_t pitch, int value, std::size_t width,
                      std::size_t height, cudaStream_t stream, bool is_async) {
  FillWork work;
  work.dst = dst;
  work.width = width;
  work.height = height;
  work.pitch = pitch;
  work.value = static_cast<unsigned char>(value);
  work.is_async = is_async;
  return fill(work, stream);
}

cudaError_t symbol_address(const void* symbol, std::size_t offset, std::size_t bytes,
                           std::byte*& address) {
  Variable* variable = find_variable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  if (offset + bytes > variable->bytes) return cudaErrorInvalidValue;
  void* base = variable_address(*variable, *current_device());
  if (base == nullptr) return cudaErrorMemoryAllocation;
  address = static_cast<std::byte*>(base) + offset;
  return cudaSuccess;
}

cudaError_t to_symbol(const void* symbol, const void* src, std::size_t bytes, std::size_t offset,
                      cudaMemcpyKind kind, cudaStream_t stream, bool is_async) {
  std::byte* address = nullptr;
  if (const cudaError_t error = symbol_address(symbol, offset, bytes, address)) return error;
  return copy_linear(address, src, bytes, kind, stream, is_async);
}

cudaError_t from_symbol(void* dst, const void* symbol, std::size_t bytes, std::size_t offset,
                        cudaMemcpyKind kind, cudaStream_t stream, bool is_async) {
  std::byte* address = nullptr;
  if (const cudaError_t error = symbol_address(symbol, offset, bytes, address)) return error;
  return copy_linear(dst, address, bytes, kind, stream, is_async);
}

}  // namespace

cudaError_t copy_linear(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream, bool is_async) {
  CopyWork work;
  work.dst = dst;
  work.src = src;
  work.width = work.dst_pitch = work.src_pitch = bytes;
  work.is_async = is_async;
  if (bytes == 0) return cudaSuccess;  // nothing is queued for an empty copy
  return copy(work, kind, stream);
}

cudaError_t copy_3d_work(const cudaMemcpy3DParms& params, CopyWork& work) {
  if (params.srcArray != nullptr || params.dstArray != nullptr) return cudaErrorNotSupported;
  const auto at = [](const cudaPitchedPtr& where, const cudaPos& pos) {
    const std::size_t row = pos.z * where.ysize + pos.y;
    return static_cast<std::byte*>(where.ptr) + row * where.pitch + pos.x;
  };
  work.dst = at(params.dstPtr, params.dstPos);
  work.src = at(params.srcPtr, params.srcPos);
  work.width = params.extent.width;
  work.height = params.extent.height * params.extent.depth;
  work.dst_pitch = params.dstPtr.pitch;
  work.src_pitch = params.srcPtr.pitch;
  const bool slices_adjoin =
      params.extent.depth <= 1 ||
      (params.srcPtr.ysize == params.extent.height && params.dstPtr.ysize == params.extent.height);
  return slices_adjoin ? cudaSuccess : cudaErrorNotSupported;
}

FillWork fill_work(const cudaMemsetParams& params) {
  FillWork work;
  work.dst = params.dst;
  work.width = params.width * params.elementSize;
  work.height = params.height;
  work.pitch = params.pitch;
  work.value = params.value;
  work.value_bytes = static_cast<std::uint8_t>(params.elementSize);
  return work;
}

}  // namespace simgpu

SIMGPU_RUNTIME(cudaMemcpy) {
  return copy_linear(p.dst, p.src, p.count, p.kind, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemcpyAsync) {
  return copy_linear(p.dst, p.src, p.count, p.kind, p.stream, true);
}
SIMGPU_RUNTIME(cudaMemcpy2D) {
  return copy_2d(p.dst, p.dpitch, p.src, p.spitch, p.width, p.height, p.kind, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemcpy2DAsync) {
  return copy_2d(p.dst, p.dpitch, p.src, p.spitch, p.width, p.height, p.kind, p.stream, true);
}
SIMGPU_RUNTIME(cudaMemcpy3D) {
  return copy_3d(p.p, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemcpy3DAsync) {
  return copy_3d(p.p, p.stream, true);
}
SIMGPU_RUNTIME(cudaMemcpyPeer) {
  return copy_peer(p.dst, p.dstDevice, p.src, p.srcDevice, p.count, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemcpyPeerAsync) {
  return copy_peer(p.dst, p.dstDevice, p.src, p.srcDevice, p.count, p.stream, true);
}
SIMGPU_RUNTIME(cudaMemcpyToSymbol) {
  return to_symbol(p.symbol, p.src, p.count, p.offset, p.kind, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemcpyToSymbolAsync) {
  return to_symbol(p.symbol, p.src, p.count, p.offset, p.kind, p.stream, true);
}
SIMGPU_RUNTIME(cudaMemcpyFromSymbol) {
  return from_symbol(p.dst, p.symbol, p.count, p.offset, p.kind, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemcpyFromSymbolAsync) {
  return from_symbol(p.dst, p.symbol, p.count, p.offset, p.kind, p.stream, true);
}

SIMGPU_RUNTIME(cudaMemset) {
  return fill_rows(p.devPtr, p.count, p.value, p.count, 1, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemsetAsync) {
  return fill_rows(p.devPtr, p.count, p.value, p.count, 1, p.stream, true);
}
SIMGPU_RUNTIME(cudaMemset2D) {
  return fill_rows(p.devPtr, p.pitch, p.value, p.width, p.height, nullptr, false);
}
SIMGPU_RUNTIME(cudaMemset2DAsync) {
  return fill_rows(p.devPtr, p.pitch, p.value, p.width, p.height, p.stream, true);
}

SIMGPU_RUNTIME(cudaGetSymbolAddress) {
  std::byte* address = nullptr;
  if (p.devPtr == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = symbol_address(p.symbol, 0, 0, address)) return error;
  *p.devPtr = address;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGetSymbolSize) {
  const Variable* variable = find_variable(p.symbol);
  if (p.size == nullptr) return cudaErrorInvalidValue;
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  *p.size = variable->bytes;
  return cudaSuccess;
}
