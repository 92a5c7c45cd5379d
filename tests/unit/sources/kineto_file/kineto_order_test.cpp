// SPDX-License-Identifier: Apache-2.0
// What can be known only when the whole file is read: order, clock, processes.
#include <gtest/gtest.h>

#include <algorithm>

#include "read_trace.hpp"

namespace gpudiag {
namespace {

using testing::Collected;
using testing::kLaunchAndKernel;
using testing::ReadTrace;

std::string array(const std::string& events) {
  return "[" + events + "]";
}

std::string launch(int correlation, const std::string& ts, int pid = 5) {
  return R"json({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":)json" +
         std::to_string(pid) + R"json(,"tid":1,"ts":)json" + ts +
         R"json(,"dur":2,"args":{"correlation":)json" + std::to_string(correlation) + "}}";
}

std::string kernel(int correlation, const std::string& ts, const std::string& dur, int device = 0) {
  return R"json({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":)json" + ts +
         R"json(,"dur":)json" + dur + R"json(,"args":{"device":)json" + std::to_string(device) +
         R"json(,"stream":7,"correlation":)json" + std::to_string(correlation) + "}}";
}

TEST(TraceOrder, RecordsComeInTheOrderInWhichTheyEnded) {
  const ReadTrace read{array(kernel(1, "100", "50") + "," + launch(2, "30") + "," +
                             launch(1, "10") + "," + kernel(2, "200", "10"))};
  ASSERT_EQ(read.records().size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(read.records(), {}, &Record::end));
  EXPECT_EQ(read.records()[0].correlation, CorrelationId{1});
}

TEST(TraceOrder, TicksComeAsOftenAsALiveSessionFlushes) {
  const ReadTrace read{array(launch(1, "0.5") + "," + launch(2, "150000") + "," +
                             launch(3, "210000") + "," + launch(4, "900000") + "," +
                             launch(5, "1000000"))};
  EXPECT_EQ(read.ticks(), (std::vector{TimePoint{210'001'500}, TimePoint{900'001'500}}));
}

// T19: kernels that the tracer could not time say neither when nor how long.
TEST(TraceOrder, UntimedRecordsAreDeliveredWithTheirLaunch) {
  const ReadTrace read{array(launch(1, "1661203462598738") + "," +
                             kernel(1, "1661203462598750", "5") + "," +
                             launch(2, "1661203462598760") + "," + kernel(2, "0", "0"))};
  const std::vector<Record> kernels = read.of_kind(RecordKind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_FALSE(kernels[0].has(record_flag::kDefective));
  EXPECT_TRUE(kernels[1].has(record_flag::kUntimed));
  EXPECT_EQ(kernels[1].start, TimePoint{24'000});
  EXPECT_EQ(kernels[1].end, TimePoint{24'000});
  EXPECT_EQ(read.trace().info().origin_unix_ns, "1661203462598738000");
}

// T20: end before start, by a nanosecond, a second, and because the end is missing.
TEST(TraceOrder, NegativeDurationsAreMarkedAndClamped) {
  const ReadTrace read{array(launch(1, "10") + "," + kernel(1, "20", "-0.001") + "," +
                             launch(2, "30") + "," + kernel(2, "40", "-1000000") + "," +
                             launch(3, "50") + "," + kernel(3, "60", "-60"))};
  const std::vector<Record> kernels = read.of_kind(RecordKind::kKernel);
  ASSERT_EQ(kernels.size(), 3u);
  for (const Record& each : kernels) {
    EXPECT_TRUE(each.has(record_flag::kNegative));
    EXPECT_LE(each.start, each.end);
  }
}

// T68: times of another clock.
TEST(TraceOrder, TimesFarFromTheHostsAreOfAForeignClock) {
  const ReadTrace read{array(launch(1, "1000000") + "," + kernel(1, "1000010", "5") + "," +
                             launch(2, "1000020") + "," + kernel(2, "9000000", "5") + "," +
                             launch(3, "1000040") + "," + kernel(3, "-5000000", "5") + "," +
                             launch(4, "1000060") + "," + kernel(4, "9e15", "5") + "," +
                             launch(5, "1000080") + "," + kernel(5, "1500000", "5"))};
  const std::vector<Record> kernels = read.of_kind(RecordKind::kKernel);
  ASSERT_EQ(kernels.size(), 5u);
  for (const Record& each : kernels) {
    const bool foreign =
        each.correlation != CorrelationId{1} && each.correlation != CorrelationId{5};
    EXPECT_EQ(each.has(record_flag::kForeignClock), foreign) << raw(each.correlation);
  }
  EXPECT_EQ(read.trace().info().origin_unix_ns, "1000000000") << "no foreign time is the beginning";
}

TEST(TraceOrder, AHostRecordOfAnotherClockDoesNotStretchTheSession) {
  const ReadTrace read{array(launch(1, "1661203462598738") + "," + launch(2, "1661203462598750") +
                             "," + launch(3, "5"))};
  EXPECT_EQ(read.records().size(), 3u);
  EXPECT_EQ(std::ranges::count_if(
                read.records(),
                [](const Record& record) { return record.has(record_flag::kForeignClock); }),
            1);
  EXPECT_EQ(read.trace().info().origin_unix_ns, "1661203462598738000");
}

TEST(TraceOrder, TheProcessWithMostCudaCallsIsTheMainOne) {
  const ReadTrace read{
      array(R"json({"ph":"X","cat":"cpu_op","name":"worker","pid":9,"tid":9,"ts":5,"dur":1},
    {"ph":"X","cat":"cpu_op","name":"worker","pid":9,"tid":9,"ts":7,"dur":1},)json" +
            launch(1, "10", 20) + "," + kernel(1, "20", "5"))};
  ASSERT_EQ(read.trace().processes().size(), 2u);
  EXPECT_EQ(read.trace().processes()[0].pid, 20);
  EXPECT_EQ(read.trace().processes()[0].operations, 1u);
  EXPECT_EQ(read.trace().processes()[1].pid, 9);
  EXPECT_EQ(read.trace().processes()[1].ranges, 2u);
  EXPECT_EQ(read.records().size(), 2u) << "the worker's ranges are not the main process's";
}

// T43: two ranks merged into one file use the same correlation ids.
TEST(TraceOrder, OperationsOfMergedRanksGoToTheProcessThatLaunchesOnTheirDevice) {
  const ReadTrace read{array(launch(1, "10", 20) + "," + launch(2, "20", 20) + "," +
                             launch(3, "25", 20) + "," + launch(1, "11", 30) + "," +
                             launch(4, "21", 30) + "," + kernel(1, "50", "5", 0) + "," +
                             kernel(2, "60", "5", 0) + "," + kernel(3, "65", "5", 0) + "," +
                             kernel(1, "51", "5", 1) + "," + kernel(4, "61", "5", 1))};
  ASSERT_EQ(read.trace().processes().size(), 2u);
  EXPECT_EQ(read.trace().processes()[0].pid, 20);
  EXPECT_EQ(read.trace().processes()[0].operations, 3u);
  EXPECT_EQ(read.trace().processes()[1].operations, 2u);
  Collected second;
  read.trace().deliver(read.trace().processes()[1].id, second);
  ASSERT_EQ(second.records.size(), 4u);
  EXPECT_EQ(second.records[2].device, DeviceId{1});
  EXPECT_EQ(second.records[3].device, DeviceId{1});
}

// T23: nothing is filtered by where it starts.
TEST(TraceOrder, OperationsBeforeAndAfterTheHostsRecordsAreKept) {
  const ReadTrace read{
      array(kernel(1, "100", "500") + "," + launch(2, "300") + "," + kernel(2, "700", "10"))};
  EXPECT_EQ(read.of_kind(RecordKind::kKernel).size(), 2u);
  EXPECT_EQ(read.of_kind(RecordKind::kKernel)[0].start, TimePoint{0});
}

}  // namespace
}  // namespace gpudiag
