// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of NCCL that make, describe and end communicators. All that is not
// modelled comes from stubs/.
#include <unistd.h>

#include <cstring>
#include <random>

#include "nccl/group.hpp"
#include "nccl/nvtx_ranges.hpp"

using namespace simgpu::nccl;

namespace {

// What an id holds: which process made it, and a number that no other id has.
struct IdContents {
  std::int32_t owner;
  std::uint64_t token;
};

Result fail(Result result, const char* text) {
  last_error_text() = text;
  return result;
}

Result init(const char* function, Communicator** out, int ranks, UniqueId id, int rank) {
  NvtxRange range(function);
  if (out == nullptr) return fail(kInvalidArgument, "no place for the communicator");
  if (ranks < 1 || rank < 0 || rank >= ranks) return fail(kInvalidArgument, "rank out of range");
  // As the real one: it needs a device.
  if (cudaFree(nullptr) != cudaSuccess) return fail(kCudaError, "no device");
  IdContents contents{};
  std::memcpy(&contents, id.internal, sizeof contents);
  Communicator* communicator =
      Communicator::enter(contents.owner, contents.token, static_cast<std::uint32_t>(ranks),
                          static_cast<std::uint32_t>(rank));
  if (communicator == nullptr) return fail(kSystemError, "no shared memory, or the rank is taken");
  *out = communicator;
  range.made(*communicator);
  return Group::of_thread().add(*communicator);
}

}  // namespace

SIMGPU_EXPORT Result ncclGetVersion(int* version);
SIMGPU_EXPORT const char* ncclGetErrorString(Result result);
SIMGPU_EXPORT const char* ncclGetLastError(const Communicator* communicator);
SIMGPU_EXPORT Result ncclGetUniqueId(UniqueId* id);
SIMGPU_EXPORT Result ncclCommInitRank(Communicator** out, int ranks, UniqueId id, int rank);
SIMGPU_EXPORT Result ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId id, int rank,
                                            void* config);
SIMGPU_EXPORT Result ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int id_count,
                                              UniqueId* ids, void* config);
SIMGPU_EXPORT Result ncclCommInitAll(Communicator** out, int count, const int* devices);
SIMGPU_EXPORT Result ncclCommSplit(Communicator* communicator, int color, int key,
                                   Communicator** out, void* config);
SIMGPU_EXPORT Result ncclCommFinalize(Communicator* communicator);
SIMGPU_EXPORT Result ncclCommDestroy(Communicator* communicator);
SIMGPU_EXPORT Result ncclCommAbort(Communicator* communicator);
SIMGPU_EXPORT Result ncclCommGetAsyncError(Communicator* communicator, Result* error);
SIMGPU_EXPORT Result ncclCommCount(const Communicator* communicator, int* count);
SIMGPU_EXPORT Result ncclCommUserRank(const Communicator* communicator, int* rank);
SIMGPU_EXPORT Result ncclCommRegister(const Communicator* communicator, void* memory,
                                      std::size_t bytes, void** handle);
SIMGPU_EXPORT Result ncclCommDeregister(const Communicator* communicator, void* handle);
SIMGPU_EXPORT Result ncclMemAlloc(void** memory, std::size_t bytes);
SIMGPU_EXPORT Result ncclMemFree(void* memory);

Result ncclGetVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = kVersion;
  return kSuccess;
}

const char* ncclGetErrorString(Result result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kCudaError:
      return "unhandled cuda error";
    case kSystemError:
      return "unhandled system error";
    case kInternalError:
      return "internal error";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(const Communicator*) {
  return last_error_text();
}

Result ncclGetUniqueId(UniqueId* id) {
  if (id == nullptr) return kInvalidArgument;
  std::random_device random;
  const IdContents contents{getpid(), (std::uint64_t{random()} << 32) | random()};
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, &contents, sizeof contents);
  return kSuccess;
}

Result ncclCommInitRank(Communicator** out, int ranks, UniqueId id, int rank) {
  return init("ncclCommInitRank", out, ranks, id, rank);
}

Result ncclCommInitRankConfig(Communicator** out, int ranks, UniqueId id, int rank, void*) {
  return init("ncclCommInitRankConfig", out, ranks, id, rank);
}

Result ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int id_count,
                                UniqueId* ids, void*) {
  if (id_count < 1 || ids == nullptr) return kInvalidArgument;
  return init("ncclCommInitRankScalable", out, ranks, ids[0], rank);
}

Result ncclCommInitAll(Communicator** out, int count, const int* devices) {
  if (out == nullptr || count < 1) return kInvalidArgument;
  UniqueId id{};
  ncclGetUniqueId(&id);
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess) return kCudaError;
  Group& group = Group::of_thread();
  group.start();
  Result result = kSuccess;
  for (int rank = 0; rank < count && result == kSuccess; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    result = cudaSetDevice(device) == cudaSuccess ? init("ncclCommInitRank", &out[rank], count, id, rank)
                                                  : fail(kCudaError, "no such device");
  }
  const Result ended = group.end();
  cudaSetDevice(before);
  return result != kSuccess ? result : ended;
}

Result ncclCommSplit(Communicator* communicator, int color, int key, Communicator** out, void*) {
  if (!Communicator::valid(communicator) || out == nullptr) return kInvalidArgument;
  if (color < kSplitNoColor) return fail(kInvalidArgument, "negative colour");
  NvtxRange range("ncclCommSplit");
  if (const Result result = communicator->split(color, key, out)) return result;
  if (*out != nullptr) range.split_off(**out, *communicator, color, key);
  return *out == nullptr ? kSuccess : Group::of_thread().add(**out);
}

Result ncclCommFinalize(Communicator* communicator) {
  return Communicator::valid(communicator) ? kSuccess : kInvalidArgument;
}

Result ncclCommDestroy(Communicator* communicator) {
  const NvtxRange range("ncclCommDestroy");
  if (communicator == nullptr) return kSuccess;
  if (!Communicator::valid(communicator)) return kInvalidArgument;
  communicator->close();
  return kSuccess;
}

Result ncclCommAbort(Communicator* communicator) {
  if (communicator == nullptr) return kSuccess;
  if (!Communicator::valid(communicator)) return kInvalidArgument;
  communicator->abort();
  return kSuccess;
}

Result ncclCommGetAsyncError(Communicator* communicator, Result* error) {
  if (!Communicator::valid(communicator) || error == nullptr) return kInvalidArgument;
  *error = communicator->async_error();
  return kSuccess;
}

Result ncclCommCount(const Communicator* communicator, int* count) {
  if (!Communicator::valid(communicator) || count == nullptr) return kInvalidArgument;
  *count = static_cast<int>(communicator->ranks());
  return kSuccess;
}

Result ncclCommUserRank(const Communicator* communicator, int* rank) {
  if (!Communicator::valid(communicator) || rank == nullptr) return kInvalidArgument;
  *rank = static_cast<int>(communicator->rank());
  return kSuccess;
}

// Registration makes transfers cheaper on hardware; here it is a promise that costs nothing.
Result ncclCommRegister(const Communicator* communicator, void* memory, std::size_t,
                        void** handle) {
  if (!Communicator::valid(communicator) || handle == nullptr) return kInvalidArgument;
  *handle = memory;
  return kSuccess;
}

Result ncclCommDeregister(const Communicator* communicator, void*) {
  return Communicator::valid(communicator) ? kSuccess : kInvalidArgument;
}

Result ncclMemAlloc(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes) == cudaSuccess ? kSuccess : kCudaError;
}

Result ncclMemFree(void* memory) {
  return cudaFree(memory) == cudaSuccess ? kSuccess : kCudaError;
}
