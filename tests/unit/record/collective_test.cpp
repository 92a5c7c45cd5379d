// SPDX-License-Identifier: Apache-2.0
#include "record/collective.hpp"

#include <gtest/gtest.h>

#include "record/names.hpp"
#include "record/record_codec.hpp"

namespace gpudiag {
namespace {

CollectiveInfo all_reduce() {
  CollectiveInfo info;
  info.kind = CollectiveKind::kAllReduce;
  info.bytes = 1'048'576;
  info.datatype = "float32";
  info.reduction = "sum";
  info.group = "0:[0,1]";
  info.group_size = 2;
  info.rank_in_group = 1;
  return info;
}

TEST(Collective, DescriptionIsTextThatReadsBack) {
  EXPECT_EQ(text_of(all_reduce()), "coll all_reduce bytes=1048576 type=float32 op=sum group=0:[0,1] size=2 rank=1");
  EXPECT_EQ(collective_of_text(text_of(all_reduce())), all_reduce());
  CollectiveInfo send;
  send.kind = CollectiveKind::kSend;
  send.group = "pp";
  send.peer = 3;
  send.channels = 4;
  send.algorithm = "ring";
  send.protocol = "ll128";
  EXPECT_EQ(collective_of_text(text_of(send)), send);
}

TEST(Collective, SpacesInAGroupsNameDoNotBreakTheDescription) {
  CollectiveInfo info = all_reduce();
  info.group = "data parallel [0, 1]";
  EXPECT_EQ(collective_of_text(text_of(info))->group, "data_parallel_[0,_1]");
}

TEST(Collective, OtherTextsAndLaterFieldsAreNoTrouble) {
  EXPECT_EQ(collective_of_text("ncclDevKernel_AllReduce_Sum_f32_RING_LL()"), std::nullopt);
  EXPECT_EQ(collective_of_text(""), std::nullopt);
  const auto later = collective_of_text("coll all_gather colour=blue bytes=x size=8");
  ASSERT_TRUE(later);
  EXPECT_EQ(later->kind, CollectiveKind::kAllGather);
  EXPECT_EQ(later->bytes, 0u);
  EXPECT_EQ(later->group_size, 8u);
  EXPECT_EQ(collective_of_text("coll teleport size=8")->kind, CollectiveKind::kUnknown);
}

TEST(Collective, TagOfARecordWithoutOneIsNone) {
  EXPECT_EQ(collective_tag_of(0), CollectiveTag{});
  EXPECT_FALSE(collective_tag_of(0).known());
  EXPECT_EQ(value2_of(CollectiveTag{}), 0u);
  const CollectiveTag tag{NameId{7}, 0};
  EXPECT_EQ(collective_tag_of(value2_of(tag)), tag);
  const CollectiveTag late{NameId{9}, 0xfffffffeu};
  EXPECT_EQ(collective_tag_of(value2_of(late)), late);
}

TEST(Collective, ARecordingCarriesIt) {
  Record record;
  record.kind = RecordKind::kKernel;
  record.value2 = value2_of({NameId{5}, 41});
  std::string bytes;
  TimePoint previous;
  append_record(bytes, record, previous);
  std::string_view rest = bytes;
  previous = {};
  const auto back = take_record(rest, previous);
  ASSERT_TRUE(back);
  EXPECT_EQ(collective_tag_of(back->value2), (CollectiveTag{NameId{5}, 41}));
}

TEST(Collective, KindsAreKnownByTheNamesOfTorchAndOfNccl) {
  using enum CollectiveKind;
  EXPECT_EQ(collective_kind_named("allreduce"), kAllReduce);
  EXPECT_EQ(collective_kind_named("nccl:all_reduce"), kAllReduce);
  EXPECT_EQ(collective_kind_named("_allgather_base"), kAllGather);
  EXPECT_EQ(collective_kind_named("_reduce_scatter_base"), kReduceScatter);
  EXPECT_EQ(collective_kind_named("all_to_allv"), kAllToAll);
  EXPECT_EQ(collective_kind_named("SendRecv"), kSendRecv);
  EXPECT_EQ(collective_kind_named("send"), kSend);
  EXPECT_EQ(collective_kind_named("gather"), kGather);
  EXPECT_EQ(collective_kind_named("wait"), kUnknown);
}

TEST(Collective, TypesHaveOneNameAndASize) {
  EXPECT_EQ(datatype_named("Float"), "float32");
  EXPECT_EQ(datatype_named("c10::BFloat16"), "bfloat16");
  EXPECT_EQ(datatype_named("ncclFloat16"), "float16");
  EXPECT_EQ(datatype_named("long int"), "int64");
  EXPECT_EQ(datatype_bytes("bfloat16"), 2u);
  EXPECT_EQ(datatype_bytes("float8_e4m3"), 1u);
  EXPECT_EQ(datatype_bytes("quaternion"), 0u);
}

}  // namespace
}  // namespace gpudiag
