// SPDX-License-Identifier: Apache-2.0
#include "timeline/operation_class.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

TEST(OperationClass, KernelsOfCollectivesAreCommunication) {
  for (const auto* name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllToAll_RING_LL_Sum_int8_t(ncclWorkElem)", "nvshmemi_transfer_rma",
        "void deep_ep::internode::dispatch<true>()",
        "void vllm::cross_device_reduce_1stage<float, 2>()"})
    EXPECT_TRUE(is_communication_kernel(name)) << name;
}

TEST(OperationClass, OrdinaryKernelsAreNot) {
  for (const auto* name : {"ampere_sgemm_128x64_nn", "void at::native::reduce_kernel<512, 1>()", "",
                           "dispatch_tokens", "combine_heads"})
    EXPECT_FALSE(is_communication_kernel(name)) << name;
}

TEST(OperationClass, CopiesBetweenDevicesAreCommunicationAndOthersCopies) {
  const NameTable names;
  OperationClassifier classifier(names);
  Record copy;
  copy.kind = RecordKind::kMemcpy;
  copy.copy = CopyKind::kPeer;
  EXPECT_EQ(classifier.class_of(copy), OperationClass::kCommunication);
  copy.copy = CopyKind::kDeviceToDevice;
  EXPECT_EQ(classifier.class_of(copy), OperationClass::kCopy);
  copy.kind = RecordKind::kMemset;
  EXPECT_EQ(classifier.class_of(copy), OperationClass::kCopy);
  copy.kind = RecordKind::kGraph;
  EXPECT_EQ(classifier.class_of(copy), OperationClass::kCompute);
}

}  // namespace
}  // namespace gpudiag
