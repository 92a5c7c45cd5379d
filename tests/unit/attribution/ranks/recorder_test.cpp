// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/rank_recorder.hpp"

#include <gtest/gtest.h>

#include "support/records.hpp"

namespace gpudiag {
namespace {

using namespace testing;

Record named(Record record, NameId name) {
  record.name = name;
  return record;
}

IterationLedger window(std::uint64_t index, TimePoint start, TimePoint end) {
  IterationLedger ledger;
  ledger.index = index;
  ledger.device = device(0);
  ledger.start = start;
  ledger.wall = end - start;
  return ledger;
}

TEST(RankRecorder, TakesTheCollectivesOfAWindowWithTheirExposedTime) {
  NameTable names;
  const NameId reduce = names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  const NameId gemm = names.intern("gemm");
  SummaryBuilder builder{RankIdentity{}};
  RankRecorder recorder{names, nullptr, [&](auto&&... iteration) { builder.add(iteration...); }};
  recorder.add(named(kernel(stream(7), 0_us, 30_us, corr(1)), gemm));
  recorder.add(named(kernel(stream(9), 20_us, 50_us, corr(2)), reduce));
  recorder.add(named(kernel(stream(7), 60_us, 70_us, corr(3)), gemm));
  recorder.add(named(kernel(stream(9), 100_us, 110_us, corr(4)), reduce));
  recorder.iteration(window(0, 0_us, 80_us));
  recorder.iteration(window(1, 80_us, 120_us));
  const auto made = builder.take();
  ASSERT_EQ(made.size(), 1u);
  ASSERT_EQ(made[0].uses.size(), 2u);
  EXPECT_EQ(made[0].uses[0].arrival, 20_us);
  EXPECT_EQ(made[0].uses[0].exposed, microseconds(20));
  EXPECT_EQ(made[0].uses[1].exposed, microseconds(10));
  EXPECT_EQ(made[0].iterations[1].use_count, 1u);
  EXPECT_EQ(made[0].abouts[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(made[0].abouts[0].group, "stream#0");
}

TEST(RankRecorder, WhatTheSourceSaysOfACollectiveGoesBeforeItsKernelsName) {
  NameTable names;
  CollectiveInfo said;
  said.kind = CollectiveKind::kAllGather;
  said.bytes = 4096;
  said.group = "tp:[0,1]";
  said.group_size = 2;
  Record record = named(kernel(stream(9), 20_us, 50_us, corr(2)), names.intern("ncclDevKernel_Generic_RING_LL()"));
  record.value2 = value2_of({names.intern(text_of(said)), 12});
  SummaryBuilder builder{RankIdentity{}};
  RankRecorder recorder{names, nullptr, [&](auto&&... iteration) { builder.add(iteration...); }};
  recorder.add(record);
  recorder.iteration(window(0, 0_us, 80_us));
  const auto made = builder.take();
  EXPECT_EQ(made[0].uses[0].sequence, 12u);
  EXPECT_EQ(made[0].abouts[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(made[0].abouts[0].group, "tp:[0,1]");
  EXPECT_EQ(made[0].abouts[0].algorithm, "ring");
}

TEST(RankRecorder, CommunicatorsWithoutANameAreToldApartByTheirStreams) {
  NameTable names;
  const NameId reduce = names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL()");
  SummaryBuilder builder{RankIdentity{}};
  RankRecorder recorder{names, nullptr, [&](auto&&... iteration) { builder.add(iteration...); }};
  recorder.add(named(kernel(stream(9), 0_us, 5_us, corr(1)), reduce));
  recorder.add(named(kernel(stream(11), 6_us, 8_us, corr(2)), reduce));
  recorder.iteration(window(0, 0_us, 80_us));
  const auto made = builder.take();
  EXPECT_NE(made[0].abouts[made[0].uses[0].about].group, made[0].abouts[made[0].uses[1].about].group);
}

}  // namespace
}  // namespace gpudiag
