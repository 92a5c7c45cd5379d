// SPDX-License-Identifier: Apache-2.0
#include "sources/nccl/nccl_join.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace gpudiag {
namespace {

constexpr ThreadId kThread{7};
constexpr std::uint64_t kComm = 0xabc;

class Kept final : public RecordSink {
 public:
  void add(const Record& record) override { records.push_back(record); }
  std::vector<Record> records;
};

struct NcclJoinTest : testing::Test {
  NameTable names;
  Kept kept;
  NcclJoin join{kept, names, [this](std::string_view text) { return names.intern(text); }};

  static NcclCall call(NcclCall::Source source, const char* function, std::uint64_t amount,
                       std::uint64_t communicator = kComm) {
    NcclCall made;
    made.source = source;
    made.communicator = communicator;
    made.amount = amount;
    std::strncpy(made.function, function, kNcclWord);
    return made;
  }
  void range(std::int64_t at, const char* function, std::uint64_t bytes, std::uint64_t communicator = kComm) {
    join.call(call(NcclCall::Source::kRange, function, bytes, communicator), kThread, {at});
  }
  void group(std::int64_t at, bool start) {
    join.call(call(start ? NcclCall::Source::kGroupStart : NcclCall::Source::kGroupEnd, "", 0, 0), kThread, {at});
  }
  void plan(std::int64_t at, std::vector<NcclCall> operations) {
    join.call(call(NcclCall::Source::kLaunch, "", 0), kThread, {at});
    for (const NcclCall& operation : operations) join.call(operation, kThread, {at});
  }
  static NcclCall operation(const char* function, std::uint64_t count, std::uint64_t sequence) {
    NcclCall made = call(NcclCall::Source::kOperation, function, count);
    made.sequence = sequence;
    made.ranks = 4;
    made.rank = 2;
    made.channels = 8;
    std::strncpy(made.datatype, "ncclFloat32", kNcclWord);
    std::strncpy(made.algorithm, "RING", kNcclWord);
    std::strncpy(made.protocol, "LL128", kNcclWord);
    return made;
  }
  void launch(std::uint32_t correlation, std::int64_t start, std::int64_t end) {
    Record record;
    record.kind = RecordKind::kApiCall;
    record.api = ApiClass::kLaunch;
    record.thread = kThread;
    record.correlation = CorrelationId{correlation};
    record.start = {start};
    record.end = {end};
    join.add(record);
  }
  void kernel(std::uint32_t correlation, const char* name, std::int64_t start, std::int64_t end, std::uint32_t graph = 0) {
    Record record;
    record.kind = RecordKind::kKernel;
    record.correlation = CorrelationId{correlation};
    record.name = names.intern(name);
    record.graph = GraphId{graph};
    record.start = {start};
    record.end = {end};
    join.add(record);
  }
  void tick(std::int64_t at) {
    Record record;
    record.kind = RecordKind::kTick;
    record.start = record.end = {at};
    join.add(record);
  }
  /// What the kernel of that correlation carries, as text; "" where nothing.
  std::string about(std::uint32_t correlation) const {
    for (const Record& record : kept.records)
      if (record.kind == RecordKind::kKernel && record.correlation == CorrelationId{correlation})
        return std::string{names.text(collective_tag_of(record.value2).about)};
    return "no such kernel";
  }
  std::uint32_t sequence(std::uint32_t correlation) const {
    for (const Record& record : kept.records)
      if (record.kind == RecordKind::kKernel && record.correlation == CorrelationId{correlation})
        return collective_tag_of(record.value2).sequence;
    return kNoSequence;
  }
};

constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr const char* kSendRecv = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

TEST_F(NcclJoinTest, ARangeBeforeTheLaunchSaysBytesAndCommunicator) {
  range(100, "AllReduce", 4096);
  launch(1, 110, 120);
  kernel(1, kAllReduce, 130, 200);
  tick(300);
  EXPECT_EQ(about(1), "coll all_reduce bytes=4096 type=float32 op=sum algo=ring proto=ll group=nccl:0000000000000abc");
  EXPECT_EQ(sequence(1), kNoSequence);
}

TEST_F(NcclJoinTest, EventsOfTheProfilerSayAllTheyKnowAndTheNumber) {
  range(100, "AllReduce", 4000);
  launch(1, 110, 120);
  plan(125, {operation("AllReduce", 1000, 41)});
  kernel(1, kAllReduce, 130, 200);
  tick(300);
  EXPECT_EQ(about(1), "coll all_reduce bytes=4000 type=float32 op=sum algo=ring proto=ll128 group=nccl:0000000000000abc "
                      "size=4 rank=2 channels=8");
  EXPECT_EQ(sequence(1), 41u);
}

TEST_F(NcclJoinTest, OfATypeThatNcclHasNoNameForTheRangeHasTheBytes) {
  NcclCall bytes = operation("Broadcast", 1000, 7);
  std::strncpy(bytes.datatype, "Unknown", kNcclWord);
  range(100, "Broadcast", 1000);
  launch(1, 110, 120);
  plan(125, {bytes});
  kernel(1, "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 130, 200);
  tick(300);
  EXPECT_TRUE(about(1).starts_with("coll broadcast bytes=1000 algo=ring")) << about(1);
  EXPECT_EQ(sequence(1), 7u);
}

TEST_F(NcclJoinTest, TypesOfNcclHaveTheNamesOfTorch) {
  for (const auto& [theirs, ours] : {std::pair{"ncclInt32", "int32"}, {"ncclInt64", "int64"}, {"ncclBfloat16", "bfloat16"}}) {
    static std::uint32_t number = 0;
    ++number;
    NcclCall one = operation("AllReduce", 8, number);
    std::memset(one.datatype, 0, sizeof one.datatype);
    std::strncpy(one.datatype, theirs, kNcclWord);
    launch(number, number * 1000, number * 1000 + 10);
    plan(number * 1000 + 20, {one});
    launch(number, number * 1000, number * 1000 + 10);
    kernel(number, kAllReduce, number * 1000 + 30, number * 1000 + 50);
    tick(number * 1000 + 100);
    EXPECT_NE(about(number).find(std::string{"type="} + ours + " "), std::string::npos) << about(number);
  }
}

TEST_F(NcclJoinTest, AnAllGatherIsCountedWhole) {
  launch(1, 110, 120);
  plan(125, {operation("AllGather", 1000, 0)});
  launch(2, 130, 140);
  kernel(1, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 150, 200);
  tick(300);
  plan(125, {});
  EXPECT_EQ(about(1), "");  // nothing had been told when its launch came
  range(400, "AllReduce", 1);
  launch(3, 410, 420);
  plan(425, {operation("AllGather", 1000, 1)});
  kernel(3, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 430, 500);
  tick(600);
  EXPECT_NE(about(3).find("bytes=16000 "), std::string::npos) << about(3);
}

TEST_F(NcclJoinTest, OperationsThatShareAKernelAreAddedUp) {
  group(90, true);
  range(100, "AllReduce", 4096);
  range(101, "AllReduce", 1024);
  group(102, false);
  launch(1, 110, 120);
  kernel(1, kAllReduce, 130, 200);
  tick(300);
  EXPECT_EQ(about(1), "coll all_reduce bytes=5120 type=float32 op=sum algo=ring proto=ll group=nccl:0000000000000abc");
}

TEST_F(NcclJoinTest, TwoCommunicatorsOfOneGroupGoToTheirKernelsInOrder) {
  group(90, true);
  range(100, "AllReduce", 4096, 0x1);
  range(101, "AllReduce", 1024, 0x2);
  group(102, false);
  launch(1, 110, 120);
  launch(2, 121, 130);
  kernel(2, kAllReduce, 140, 250);
  kernel(1, kAllReduce, 130, 200);
  tick(300);
  EXPECT_EQ(about(1), "coll all_reduce bytes=4096 type=float32 op=sum algo=ring proto=ll group=nccl:0000000000000001");
  EXPECT_EQ(about(2), "coll all_reduce bytes=1024 type=float32 op=sum algo=ring proto=ll group=nccl:0000000000000002");
}

TEST_F(NcclJoinTest, ACallWhoseKernelIsLostIsNotGivenToTheNext) {
  range(100, "AllReduce", 4096);
  launch(1, 110, 120);
  plan(125, {operation("AllReduce", 1024, 5)});
  range(200, "AllReduce", 64);
  launch(2, 210, 220);
  plan(225, {operation("AllReduce", 16, 6)});
  kernel(2, kAllReduce, 230, 300);
  tick(400);
  EXPECT_NE(about(2).find("bytes=64 "), std::string::npos) << about(2);
  EXPECT_EQ(sequence(2), 6u);
}

TEST_F(NcclJoinTest, SendsAndReceivesOfOneKernelAreATransferBothWays) {
  group(90, true);
  range(100, "Send", 100);
  range(101, "Recv", 100);
  group(102, false);
  launch(1, 110, 120);
  kernel(1, kSendRecv, 130, 200);
  tick(300);
  EXPECT_EQ(about(1), "coll send_recv bytes=200 group=nccl:0000000000000abc");
}

TEST_F(NcclJoinTest, KernelsOfAGraphGetNothing) {
  range(100, "AllReduce", 4096);
  launch(1, 110, 120);
  kernel(1, kAllReduce, 130, 200, 3);
  tick(300);
  EXPECT_EQ(about(1), "");
}

TEST_F(NcclJoinTest, OtherKernelsPassAtOnceAndNcclsAtTheTick) {
  range(100, "AllReduce", 4096);
  launch(1, 110, 120);
  kernel(1, kAllReduce, 130, 200);
  kernel(2, "gemm", 130, 200);
  ASSERT_EQ(kept.records.size(), 2u);  // the launch and the product
  EXPECT_EQ(kept.records[1].correlation, CorrelationId{2});
  tick(300);
  ASSERT_EQ(kept.records.size(), 4u);
  EXPECT_EQ(kept.records[3].kind, RecordKind::kTick);
}

TEST_F(NcclJoinTest, NothingIsHeldBackWhereNcclTellsNothing) {
  launch(1, 110, 120);
  kernel(1, kAllReduce, 130, 200);
  EXPECT_EQ(kept.records.size(), 2u);
}

TEST_F(NcclJoinTest, ProgressCountsCallsAndSaysSinceWhenTheNewestWaits) {
  NcclCall made = call(NcclCall::Source::kCommunicator, "CommInitRank", 0);
  made.ranks = 2;
  made.rank = 1;
  join.call(made, kThread, {50});
  range(100, "AllReduce", 4096);
  launch(1, 110, 120);
  kernel(1, kAllReduce, 130, 200);
  range(250, "AllGather", 64);
  launch(2, 260, 270);
  tick(300);
  const std::vector<NcclProgress> progress = join.progress();
  ASSERT_EQ(progress.size(), 1u);
  EXPECT_EQ(progress[0].called, 2u);
  EXPECT_EQ(progress[0].ranks, 2u);
  EXPECT_EQ(progress[0].rank, 1u);
  EXPECT_EQ(progress[0].newest, (std::vector{CollectiveKind::kAllReduce, CollectiveKind::kAllGather}));
  EXPECT_EQ(progress[0].waiting_since, TimePoint{250});
}

TEST_F(NcclJoinTest, WhereTheKernelHasEndedNothingWaits) {
  range(100, "AllReduce", 4096);
  launch(1, 110, 120);
  kernel(1, kAllReduce, 130, 200);
  tick(300);
  ASSERT_EQ(join.progress().size(), 1u);
  EXPECT_EQ(join.progress()[0].waiting_since, kTimeMax);
}

TEST_F(NcclJoinTest, WhileOtherOperationsEndNothingCountsAsWaiting) {
  range(100, "AllReduce", 4096);  // into a graph, whose kernels are not told apart
  launch(1, 110, 120);
  kernel(9, "gemm", 130, 200, 3);
  tick(300);
  ASSERT_EQ(join.progress().size(), 1u);
  EXPECT_EQ(join.progress()[0].waiting_since, kTimeMax);
}

}  // namespace
}  // namespace gpudiag
