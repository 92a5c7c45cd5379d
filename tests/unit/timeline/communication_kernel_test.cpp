// SPDX-License-Identifier: Apache-2.0
#include "timeline/communication_kernel.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

CollectiveInfo of(CollectiveKind kind, std::string reduction = {}, std::string type = {}, std::string algorithm = {},
                  std::string protocol = {}) {
  CollectiveInfo info;
  info.kind = kind;
  info.reduction = std::move(reduction);
  info.datatype = std::move(type);
  info.algorithm = std::move(algorithm);
  info.protocol = std::move(protocol);
  return info;
}

TEST(CommunicationKernel, NamesOfNcclTellTheOperation) {
  const CommunicationTable table;
  using enum CollectiveKind;
  EXPECT_EQ(table.look_up("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            of(kAllReduce, "sum", "float32", "ring", "ll"));
  EXPECT_EQ(table.look_up("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"),
            of(kAllReduce, "sum", "float32", "ring", "ll"));
  EXPECT_EQ(table.look_up("ncclDevKernel_ReduceScatter_PreMulSum_bf16_TREE_LL128(ncclDevComm*)"),
            of(kReduceScatter, "premulsum", "bfloat16", "tree", "ll128"));
  EXPECT_EQ(table.look_up("ncclDevKernel_AllReduce_Sum_f16_NVLS_TREE_SIMPLE()"),
            of(kAllReduce, "sum", "float16", "nvls_tree", "simple"));
}

TEST(CommunicationKernel, WhatReducesNothingHasNoTypeOfTheJobs) {
  const CommunicationTable table;
  using enum CollectiveKind;
  EXPECT_EQ(table.look_up("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"),
            of(kSendRecv, "", "", "ring", "simple"));
  EXPECT_EQ(table.look_up("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            of(kAllGather, "", "", "ring", "ll"));
  EXPECT_EQ(table.look_up("ncclDevKernel_Broadcast_RING_LL()"), of(kBroadcast, "", "", "ring", "ll"));
}

TEST(CommunicationKernel, OthersThanNcclAreInTheSameTable) {
  const CommunicationTable table;
  using enum CollectiveKind;
  EXPECT_EQ(table.look_up("void deep_ep::internode::combine<true, 8>(...)"), of(kAllToAll));
  EXPECT_EQ(table.look_up("void vllm::cross_device_reduce_2stage<half, 8>()"), of(kAllReduce));
  EXPECT_EQ(table.look_up("nvshmemi_barrier_all")->kind, kBarrier);
  EXPECT_EQ(table.look_up("nvshmemi_transfer_rma")->kind, kUnknown);
  EXPECT_EQ(table.look_up("ampere_sgemm_128x64_nn"), std::nullopt);
  EXPECT_EQ(table.look_up("dispatch_tokens"), std::nullopt);
}

TEST(CommunicationKernel, TheUserAddsAndTakesAway) {
  const CommunicationTable table({"my_ring_.*=all_reduce", "nvshmem_free_kernel=none"});
  EXPECT_TRUE(table.errors().empty());
  EXPECT_EQ(table.look_up("void my_ring_reduce<float>()"), of(CollectiveKind::kAllReduce));
  EXPECT_EQ(table.look_up("nvshmem_free_kernel"), std::nullopt);
}

TEST(CommunicationKernel, ARuleThatCannotBeReadIsNamed) {
  const CommunicationTable table({"(=all_reduce", "x=teleport", "=all_reduce", "plain"});
  EXPECT_EQ(table.errors().size(), 4u);
}

}  // namespace
}  // namespace gpudiag
