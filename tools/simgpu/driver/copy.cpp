// SPDX-License-Identifier: Apache-2.0
//
// Copies and fills.
#include "driver/entry.hpp"

namespace {

constexpr int kDefaultKind = 4;  // the addresses say between which memories

CUresult copy(void* dst, const void* src, std::size_t bytes, CUstream stream, bool is_async) {
  if (bytes == 0) return CUDA_SUCCESS;
  CopyWork work;
  work.dst = dst;
  work.src = src;
  work.width = work.dst_pitch = work.src_pitch = bytes;
  work.is_async = is_async;
  if (!is_async) {
    if (const int error = check_unsafe_call()) return as_result(error);
  }
  if (const int error = prepare_copy(work, kDefaultKind)) return as_result(error);
  return with_stream(stream, [&](Stream& s) { return submit(s, work); });
}

CUresult fill(CUdeviceptr dst, std::uint32_t value, std::uint8_t value_bytes, std::size_t count,
              CUstream stream, bool is_async) {
  FillWork work;
  work.dst = pointer(dst);
  work.width = work.pitch = count * value_bytes;
  work.value = value;
  work.value_bytes = value_bytes;
  work.is_async = is_async;
  if (const int error = prepare_fill(work)) return as_result(error);
  return with_stream(stream, [&](Stream& s) { return submit(s, work); });
}

}  // namespace

SIMGPU_DRIVER(cuMemcpy) {
  return copy(pointer(p.dst), pointer(p.src), p.ByteCount, nullptr, false);
}
SIMGPU_DRIVER(cuMemcpyAsync) {
  return copy(pointer(p.dst), pointer(p.src), p.ByteCount, p.hStream, true);
}
SIMGPU_DRIVER(cuMemcpyHtoD_v2) {
  return copy(pointer(p.dstDevice), p.srcHost, p.ByteCount, nullptr, false);
}
SIMGPU_DRIVER(cuMemcpyHtoDAsync_v2) {
  return copy(pointer(p.dstDevice), p.srcHost, p.ByteCount, p.hStream, true);
}
SIMGPU_DRIVER(cuMemcpyDtoH_v2) {
  return copy(p.dstHost, pointer(p.srcDevice), p.ByteCount, nullptr, false);
}
SIMGPU_DRIVER(cuMemcpyDtoHAsync_v2) {
  return copy(p.dstHost, pointer(p.srcDevice), p.ByteCount, p.hStream, true);
}
SIMGPU_DRIVER(cuMemcpyDtoD_v2) {
  return copy(pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, nullptr, false);
}
SIMGPU_DRIVER(cuMemcpyDtoDAsync_v2) {
  return copy(pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, p.hStream, true);
}
SIMGPU_DRIVER(cuMemcpyPeer) {
  return copy(pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, nullptr, false);
}
SIMGPU_DRIVER(cuMemcpyPeerAsync) {
  return copy(pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, p.hStream, true);
}

SIMGPU_DRIVER(cuMemsetD8_v2) {
  return fill(p.dstDevice, p.uc, 1, p.N, nullptr, false);
}
SIMGPU_DRIVER(cuMemsetD16_v2) {
  return fill(p.dstDevice, p.us, 2, p.N, nullptr, false);
}
SIMGPU_DRIVER(cuMemsetD32_v2) {
  return fill(p.dstDevice, p.ui, 4, p.N, nullptr, false);
}
SIMGPU_DRIVER(cuMemsetD8Async) {
  return fill(p.dstDevice, p.uc, 1, p.N, p.hStream, true);
}
SIMGPU_DRIVER(cuMemsetD16Async) {
  return fill(p.dstDevice, p.us, 2, p.N, p.hStream, true);
}
SIMGPU_DRIVER(cuMemsetD32Async) {
  return fill(p.dstDevice, p.ui, 4, p.N, p.hStream, true);
}
