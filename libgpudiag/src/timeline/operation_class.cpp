// SPDX-License-Identifier: Apache-2.0
#include "timeline/operation_class.hpp"

#include <cstddef>

namespace gpudiag {
namespace {

// Parts of kernel names. NCCL from 2.19 and before; RCCL uses NCCL's names. NVSHMEM's own kernels;
// DeepEP's live in namespace deep_ep; the rest are all-reduce kernels of inference engines
// (vLLM and SGLang cross_device_reduce, TensorRT-LLM, FlashInfer, PyTorch symmetric memory).
constexpr std::string_view kCommunicationParts[] = {
    "ncclDevKernel", "ncclKernel",          "ncclSymkDevKernel",    "rcclKernel",
    "nvshmem",       "deep_ep::",           "cross_device_reduce",  "oneShotAllReduce",
    "twoShotAllReduce", "one_shot_all_reduce", "two_shot_all_reduce", "AllReduceKernel",
    "all_reduce_one_shot", "multimem_all_reduce", "allreduce_fusion_kernel", "mscclKernel"};

}  // namespace

bool is_communication_kernel(std::string_view name) {
  for (const auto part : kCommunicationParts)
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

OperationClass OperationClassifier::class_of(const Record& operation) {
  if (operation.kind == RecordKind::kMemcpy)
    return operation.copy == CopyKind::kPeer ? OperationClass::kCommunication
                                             : OperationClass::kCopy;
  if (operation.kind == RecordKind::kMemset) return OperationClass::kCopy;
  if (operation.kind == RecordKind::kGraph) return OperationClass::kCompute;
  const std::size_t id = raw(operation.name);
  if (id >= names_.size()) return OperationClass::kCompute;
  if (id >= is_communication_.size()) is_communication_.resize(id + 1);
  auto& known = is_communication_[id];
  if (!known) known = is_communication_kernel(names_.text(operation.name));
  return *known ? OperationClass::kCommunication : OperationClass::kCompute;
}

}  // namespace gpudiag
