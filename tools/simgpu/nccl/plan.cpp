// SPDX-License-Identifier: Apache-2.0
#include "nccl/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace simgpu::nccl {
namespace {

double setting(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  const double value = text == nullptr ? 0.0 : std::strtod(text, nullptr);
  return value > 0.0 ? value : otherwise;
}

// NVLink within a host, as nccl-tests would report it as bus bandwidth.
double bytes_per_ns() {
  static const double kValue = setting("SIMGPU_NCCL_BYTES_PER_S", 300e9) * 1e-9;
  return kValue;
}

double latency_ns() {
  static const double kValue = setting("SIMGPU_NCCL_LATENCY_NS", 8000.0);
  return kValue;
}

// Times the bytes of a task that pass the slowest link.
double traffic(const Task& task, double ranks) {
  switch (task.kind) {
    case TaskKind::all_reduce:
      return 2.0 * (ranks - 1.0) / ranks;
    case TaskKind::all_gather:
    case TaskKind::reduce_scatter:
    case TaskKind::all_to_all:
    case TaskKind::gather:
    case TaskKind::scatter:
      return ranks - 1.0;
    default:
      return 1.0;
  }
}

const char* function_name(TaskKind kind) {
  switch (kind) {
    case TaskKind::all_reduce:
      return "AllReduce";
    case TaskKind::all_gather:
      return "AllGather";
    case TaskKind::reduce_scatter:
      return "ReduceScatter";
    case TaskKind::broadcast:
      return "Broadcast";
    case TaskKind::reduce:
      return "Reduce";
    default:
      return "SendRecv";  // NCCL makes all others of sends and receives
  }
}

const char* reduction_name(const ReductionRule& rule) {
  switch (rule.kind) {
    case kProduct:
      return "Prod_";
    case kMax:
    case kMin:
      return "MinMax_";
    default:
      return "Sum_";
  }
}

bool reduces(TaskKind kind) {
  return kind == TaskKind::all_reduce || kind == TaskKind::reduce_scatter ||
         kind == TaskKind::reduce;
}

}  // namespace

Shape shape_of(const Task& task, std::uint32_t rank, std::uint32_t ranks) {
  const bool root = rank == task.peer;
  switch (task.kind) {
    case TaskKind::all_reduce:
      return {1, 1};
    case TaskKind::all_gather:
      return {1, ranks};
    case TaskKind::reduce_scatter:
      return {ranks, 1};
    case TaskKind::all_to_all:
      return {ranks, ranks};
    case TaskKind::broadcast:
      return {root ? 1U : 0U, 1};
    case TaskKind::reduce:
      return {1, root ? 1U : 0U};
    case TaskKind::gather:
      return {1, root ? ranks : 0U};
    case TaskKind::scatter:
      return {root ? ranks : 0U, 1};
    default:
      return {0, 0};
  }
}

double task_ns(const Task& task, std::uint32_t ranks) {
  const auto count = static_cast<double>(ranks);
  return latency_ns() * (1.0 + 0.25 * std::log2(count)) +
         static_cast<double>(task.bytes()) * traffic(task, count) / bytes_per_ns();
}

std::string kernel_name(const Plan& plan) {
  const Task& task = plan.tasks.front();
  std::string plain = fmt::format("ncclDevKernel_{}", function_name(task.kind));
  if (reduces(task.kind)) {
    plain += fmt::format("_{}{}_RING_LL", reduction_name(task.rule), type_letters(task.type));
  } else if (plain != "ncclDevKernel_SendRecv") {
    plain += "_RING_LL";
  }
  return fmt::format("_Z{}{}24ncclDevKernelArgsStorageILm4096EE", plain.size(), plain);
}

unsigned channels(const Plan& plan) {
  std::size_t bytes = 0;
  for (const Task& task : plan.tasks) bytes += task.bytes();
  constexpr std::size_t kBytesPerChannel = 64 * 1024;
  return static_cast<unsigned>(std::clamp<std::size_t>(bytes / kBytesPerChannel, 1, 24));
}

}  // namespace simgpu::nccl
