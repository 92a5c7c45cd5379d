// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of NCCL that move data.
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "nccl/group.hpp"
#include "nccl/nvtx_ranges.hpp"

using namespace simgpu::nccl;

namespace {

// Operations made by ncclRedOpCreatePreMulSum, by number.
struct MadeReductions {
  std::mutex mutex;
  std::map<int, double> factors;
  int next = kPreMulSum;
};

MadeReductions& made() {
  static auto* const kMade = new MadeReductions;  // leaked, as all state of the simulation
  return *kMade;
}

std::optional<ReductionRule> rule_of(int reduction) {
  if (reduction >= kSum && reduction < kPreMulSum) {
    return ReductionRule{static_cast<Reduction>(reduction), 1.0};
  }
  MadeReductions& known = made();
  const std::lock_guard guard(known.mutex);
  const auto at = known.factors.find(reduction);
  if (at == known.factors.end()) return std::nullopt;
  return ReductionRule{kPreMulSum, at->second};
}

Result submit(Communicator* communicator, cudaStream_t stream, TaskKind kind, const void* input,
              void* output, std::size_t count, DataType type, int peer, int reduction = kSum) {
  const std::string function = std::string("nccl") + profiler_function(kind);
  const NvtxRange range(function.c_str(), communicator, kind, count, type, peer, reduction);
  if (!Communicator::valid(communicator)) return kInvalidArgument;
  if (element_bytes(type) == 0) return kInvalidArgument;
  if (peer < 0 || static_cast<std::uint32_t>(peer) >= communicator->ranks()) {
    return kInvalidArgument;
  }
  const std::optional<ReductionRule> rule = rule_of(reduction);
  if (!rule) return kInvalidArgument;
  Task task;
  task.kind = kind;
  task.input = static_cast<const std::byte*>(input);
  task.output = static_cast<std::byte*>(output);
  task.count = count;
  task.type = type;
  task.peer = static_cast<std::uint32_t>(peer);
  task.rule = *rule;
  const Shape shape = shape_of(task, communicator->rank(), communicator->ranks());
  const bool needs_input = shape.input_parts != 0 || kind == TaskKind::send;
  const bool needs_output = shape.output_parts != 0 || kind == TaskKind::receive;
  if (count != 0 && ((needs_input && input == nullptr) || (needs_output && output == nullptr))) {
    return kInvalidArgument;
  }
  return Group::of_thread().add(*communicator, stream, task);
}

// The scalar of a reduction, as it lies in host memory.
std::optional<double> read_scalar(const void* scalar, DataType type) {
  if (scalar == nullptr) return std::nullopt;
  const auto* at = static_cast<const std::byte*>(scalar);
  switch (type) {
    case kFloat64: {
      double value = 0.0;
      std::copy(at, at + sizeof value, reinterpret_cast<std::byte*>(&value));
      return value;
    }
    case kFloat32: {
      float value = 0.0F;
      std::copy(at, at + sizeof value, reinterpret_cast<std::byte*>(&value));
      return value;
    }
    case kFloat16:
    case kBfloat16:
      return half_value(type, at);
    default:
      return std::nullopt;
  }
}

}  // namespace

SIMGPU_EXPORT Result ncclGroupStart();
SIMGPU_EXPORT Result ncclGroupEnd();
SIMGPU_EXPORT Result ncclAllReduce(const void* input, void* output, std::size_t count,
                                   DataType type, int reduction, Communicator* communicator,
                                   cudaStream_t stream);
SIMGPU_EXPORT Result ncclAllGather(const void* input, void* output, std::size_t count,
                                   DataType type, Communicator* communicator, cudaStream_t stream);
SIMGPU_EXPORT Result ncclReduceScatter(const void* input, void* output, std::size_t count,
                                       DataType type, int reduction, Communicator* communicator,
                                       cudaStream_t stream);
SIMGPU_EXPORT Result ncclBroadcast(const void* input, void* output, std::size_t count,
                                   DataType type, int root, Communicator* communicator,
                                   cudaStream_t stream);
SIMGPU_EXPORT Result ncclBcast(void* memory, std::size_t count, DataType type, int root,
                               Communicator* communicator, cudaStream_t stream);
SIMGPU_EXPORT Result ncclReduce(const void* input, void* output, std::size_t count, DataType type,
                                int reduction, int root, Communicator* communicator,
                                cudaStream_t stream);
SIMGPU_EXPORT Result ncclAlltoAll(const void* input, void* output, std::size_t count,
                                  DataType type, Communicator* communicator, cudaStream_t stream);
SIMGPU_EXPORT Result ncclGather(const void* input, void* output, std::size_t count, DataType type,
                                int root, Communicator* communicator, cudaStream_t stream);
SIMGPU_EXPORT Result ncclScatter(const void* input, void* output, std::size_t count, DataType type,
                                 int root, Communicator* communicator, cudaStream_t stream);
SIMGPU_EXPORT Result ncclSend(const void* input, std::size_t count, DataType type, int peer,
                              Communicator* communicator, cudaStream_t stream);
SIMGPU_EXPORT Result ncclRecv(void* output, std::size_t count, DataType type, int peer,
                              Communicator* communicator, cudaStream_t stream);
SIMGPU_EXPORT Result ncclRedOpCreatePreMulSum(int* reduction, const void* scalar, DataType type,
                                              int residence, Communicator* communicator);
SIMGPU_EXPORT Result ncclRedOpDestroy(int reduction, Communicator* communicator);

Result ncclGroupStart() {
  const NvtxRange range("ncclGroupStart");
  Group::of_thread().start();
  return kSuccess;
}

Result ncclGroupEnd() {
  const NvtxRange range("ncclGroupEnd");
  return Group::of_thread().end();
}

Result ncclAllReduce(const void* input, void* output, std::size_t count, DataType type,
                     int reduction, Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::all_reduce, input, output, count, type, 0,
                reduction);
}

Result ncclAllGather(const void* input, void* output, std::size_t count, DataType type,
                     Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::all_gather, input, output, count, type, 0);
}

Result ncclReduceScatter(const void* input, void* output, std::size_t count, DataType type,
                         int reduction, Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::reduce_scatter, input, output, count, type, 0,
                reduction);
}

Result ncclBroadcast(const void* input, void* output, std::size_t count, DataType type, int root,
                     Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::broadcast, input, output, count, type, root);
}

Result ncclBcast(void* memory, std::size_t count, DataType type, int root,
                 Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::broadcast, memory, memory, count, type, root);
}

Result ncclReduce(const void* input, void* output, std::size_t count, DataType type, int reduction,
                  int root, Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::reduce, input, output, count, type, root,
                reduction);
}

Result ncclAlltoAll(const void* input, void* output, std::size_t count, DataType type,
                    Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::all_to_all, input, output, count, type, 0);
}

Result ncclGather(const void* input, void* output, std::size_t count, DataType type, int root,
                  Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::gather, input, output, count, type, root);
}

Result ncclScatter(const void* input, void* output, std::size_t count, DataType type, int root,
                   Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::scatter, input, output, count, type, root);
}

Result ncclSend(const void* input, std::size_t count, DataType type, int peer,
                Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::send, input, nullptr, count, type, peer);
}

Result ncclRecv(void* output, std::size_t count, DataType type, int peer,
                Communicator* communicator, cudaStream_t stream) {
  return submit(communicator, stream, TaskKind::receive, nullptr, output, count, type, peer);
}

// Scalars in device memory are backed by host memory and read now.
Result ncclRedOpCreatePreMulSum(int* reduction, const void* scalar, DataType type, int,
                                Communicator* communicator) {
  if (!Communicator::valid(communicator) || reduction == nullptr) return kInvalidArgument;
  const std::optional<double> factor = read_scalar(scalar, type);
  if (!factor) return kInvalidArgument;
  MadeReductions& known = made();
  const std::lock_guard guard(known.mutex);
  *reduction = known.next++;
  known.factors[*reduction] = *factor;
  return kSuccess;
}

Result ncclRedOpDestroy(int reduction, Communicator* communicator) {
  if (!Communicator::valid(communicator)) return kInvalidArgument;
  MadeReductions& known = made();
  const std::lock_guard guard(known.mutex);
  return known.factors.erase(reduction) == 1 ? kSuccess : kInvalidArgument;
}
