// SPDX-License-Identifier: Apache-2.0
// The sweep is what the engine is measured by, so it is itself held to a case done by hand.
#include "sweep.hpp"

#include <gtest/gtest.h>

namespace gpudiag::golden {
namespace {

Record operation(RecordKind kind, std::int64_t start, std::int64_t end, NameId name = kNoName,
                 DeviceId device = DeviceId{0}) {
  Record record;
  record.kind = kind;
  record.start = TimePoint{start};
  record.end = TimePoint{end};
  record.name = name;
  record.device = device;
  return record;
}

TEST(Sweep, GivesEachMomentToTheFirstStateThatHolds) {
  NameTable names;
  const NameId gemm = names.intern("gemm");
  const NameId all_reduce = names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  const std::vector<Record> records{
      operation(RecordKind::kKernel, 100, 200, gemm),
      operation(RecordKind::kKernel, 150, 300, all_reduce),  // exposed from 200
      operation(RecordKind::kMemcpy, 250, 320),              // exposed from 300
      operation(RecordKind::kMemset, 400, 410),
      operation(RecordKind::kKernel, 405, 405, gemm),             // an instant
      operation(RecordKind::kKernel, 0, 900, gemm, DeviceId{1}),  // elsewhere
  };
  const SweptTimes swept = sweep(records, DeviceId{0}, names);
  EXPECT_EQ(swept.wall, 310);
  EXPECT_EQ(swept.compute, 100);
  EXPECT_EQ(swept.communication, 100);
  EXPECT_EQ(swept.copy, 30);
  EXPECT_EQ(swept.idle, 80);
  EXPECT_EQ(swept.communication_in_all, 150);
  EXPECT_EQ(swept.copy_in_all, 80);
}

}  // namespace
}  // namespace gpudiag::golden
