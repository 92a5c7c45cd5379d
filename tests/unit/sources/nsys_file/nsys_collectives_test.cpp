// SPDX-License-Identifier: Apache-2.0
// NCCL's kernels with what the ranges of its calls say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "export_file.hpp"
#include "record/collective.hpp"

namespace gpudiag::testing {
namespace {

std::optional<CollectiveInfo> about(const ReadExport& read, const Record& kernel) {
  const CollectiveTag tag = collective_tag_of(kernel.value2);
  EXPECT_EQ(tag.sequence, kNoSequence);
  return collective_of_text(read.trace().names().text(tag.about));
}

std::string message(std::int64_t communicator, std::int64_t bytes, const std::string& more = "") {
  return fmt::format(R"({{"NCCL communicator ID":{},"Message size [bytes]":{}{}}})", communicator, bytes, more);
}

const std::string kInit = range("ncclCommInitRank", 0, 5, 100,
                                R"({"NCCL communicator ID":255,"No. of ranks":4,"Rank":2,"CUDA device":0})");

TEST(NsysCollectives, AKernelLaunchedInsideACallIsThatCalls) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      kInit + range("ncclAllReduce", 10, 30, 100, message(255, 4096, R"(,"Reduction operation":"Sum")")) +
      call(8, 1, 20, 25) + kernel(1, 40, 90, 100, 0, 9))};
  const auto info = about(read, read.one(RecordKind::kKernel));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(info->bytes, 4096u);
  EXPECT_EQ(info->group, "ff");
  EXPECT_EQ(info->group_size, 4u);
  EXPECT_EQ(info->rank_in_group, 2u);
  EXPECT_EQ(info->reduction, "Sum");
  EXPECT_EQ(read.trace().processes().front().rank, 2u);
  EXPECT_EQ(read.trace().info().world_size, 4u);
}

TEST(NsysCollectives, AGroupsKernelIsLaunchedAtItsEnd) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      range("ncclGroupStart", 10, 11) + range("ncclSend", 12, 13, 100, message(255, 100, R"(,"Peer rank":1)")) +
      range("ncclRecv", 14, 15, 100, message(255, 300, R"(,"Peer rank":1)")) +
      range("ncclSend", 16, 17, 100, message(255, 100, R"(,"Peer rank":1)")) + range("ncclGroupEnd", 20, 30) +
      call(8, 1, 22, 25) + kernel(1, 40, 90, 100, 0, 10))};
  const auto info = about(read, read.one(RecordKind::kKernel));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->kind, CollectiveKind::kSendRecv);
  EXPECT_EQ(info->bytes, 300u);  // 200 out, 300 in
  EXPECT_EQ(info->peer, 1u);
  EXPECT_EQ(info->group, "ff");
}

TEST(NsysCollectives, OneRanksPartIsCountedForAllWhereTheirNumberIsKnown) {
  const std::string gather = "INSERT INTO StringIds VALUES (60, 'ncclDevKernel_AllGather_RING_LL');" +
                             range("ncclAllGather", 10, 30, 100, message(255, 100)) + call(8, 1, 20, 25) +
                             kernel(1, 40, 90, 100, 0, 60);
  const ReadExport known{ExportFile{}.sql(kTables).sql(kInit + gather)};
  EXPECT_EQ(about(known, known.one(RecordKind::kKernel))->bytes, 400u);
  const ReadExport unknown{ExportFile{}.sql(kTables).sql(gather)};
  EXPECT_EQ(about(unknown, unknown.one(RecordKind::kKernel))->bytes, 0u);
}

TEST(NsysCollectives, WhatDoesNotFitTheKernelIsNotSaidOfIt) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      range("ncclAllGather", 10, 30, 100, message(255, 100)) + call(8, 1, 20, 25) + kernel(1, 40, 90, 100, 0, 9) +
      call(8, 2, 50, 55) + kernel(2, 100, 110, 100, 0, 9))};
  for (const Record& kernel : read.of_kind(RecordKind::kKernel)) EXPECT_EQ(kernel.value2, 0u);
}

TEST(NsysCollectives, WithoutAPayloadTheKernelsNameIsAllThereIs) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(range("ncclAllReduce", 10, 30) + call(8, 1, 20, 25) +
                                                      kernel(1, 40, 90, 100, 0, 9))};
  EXPECT_EQ(read.one(RecordKind::kKernel).value2, 0u);
  EXPECT_EQ(read.of_kind(RecordKind::kRange).size(), 1u);
}

}  // namespace
}  // namespace gpudiag::testing
