// SPDX-License-Identifier: Apache-2.0
// Clocks by hand: the session's goes on by 20 ns with each reading and as long as is paused.
#include "sources/cupti/record_clock.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

std::int64_t g_now_ns = 0;

TimePoint now_by_hand() { return {g_now_ns += 20}; }
void pause_by_hand(DurationNs length) { g_now_ns += length.ns; }

/// `counts_per_ns` since `origin`.
struct Counter {
  std::int64_t origin = 0;
  double counts_per_ns = 1;
  bool broken = false;

  std::uint64_t at(std::int64_t session_ns) const {
    return static_cast<std::uint64_t>(origin + static_cast<std::int64_t>(static_cast<double>(session_ns) * counts_per_ns));
  }
};

bool read_counter(std::uint64_t& count, void* user) {
  const auto* counter = static_cast<const Counter*>(user);
  count = counter->at(g_now_ns + 10);
  return !counter->broken;
}

constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;

class RecordClocks : public ::testing::Test {
 protected:
  RecordClocks() { g_now_ns = 1'000'000'000; }

  /// The time in the session of what the counter shows at `session_ns`.
  std::int64_t converted(const Counter& counter, std::int64_t session_ns) const {
    return clock_.map().to_session(static_cast<std::int64_t>(counter.at(session_ns))).time.ns;
  }
  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      g_now_ns += 200'000'000;
      EXPECT_FALSE(clock_.advance());
    }
  }

  Counter cupti_{kEpoch, 1};
  Counter cycles_{7'000'000, 2.1};
  Counter monotonic_{0, 1};
  Counter realtime_{kEpoch, 1};
  RecordClock clock_{{ClockSource{"CUPTI's clock", read_counter, &cupti_}, ClockSource{"cycles", read_counter, &cycles_},
                      ClockSource{"monotonic", read_counter, &monotonic_},
                      ClockSource{"realtime", read_counter, &realtime_}},
                     now_by_hand,
                     pause_by_hand};
};

TEST_F(RecordClocks, TheDefaultClockIsTakenWithoutAMeasurement) {
  clock_.restart();
  EXPECT_LT(g_now_ns, 1'000'010'000) << "it paused";
  EXPECT_TRUE(clock_.counts_ns());
  EXPECT_NEAR(static_cast<double>(converted(cupti_, 1'000'500'000)), 1'000'500'000.0, 20.0);
}

TEST_F(RecordClocks, ACycleCounterLeftByAnotherProfilerIsConverted) {
  cupti_ = cycles_;
  clock_.restart();
  EXPECT_FALSE(clock_.counts_ns());
  rounds(3);
  EXPECT_NEAR(static_cast<double>(converted(cupti_, 1'450'000'000)), 1'450'000'000.0, 50.0);
  EXPECT_EQ(clock_.steps(), 0u);
  clock_.settle(cupti_.at(1'300'000'000));
  EXPECT_TRUE(clock_.settled());
  EXPECT_STREQ(clock_.name(), "CUPTI's clock");
  EXPECT_TRUE(clock_.map().to_session(static_cast<std::int64_t>(cupti_.at(1'300'000'000))).certain);
}

TEST_F(RecordClocks, AnotherClockOfNanosecondsNeedsNoUnit) {
  cupti_ = Counter{5'000, 1};
  clock_.restart();
  EXPECT_TRUE(clock_.counts_ns());
  EXPECT_NEAR(static_cast<double>(converted(cupti_, 1'000'500'000)), 1'000'500'000.0, 20.0);
}

TEST_F(RecordClocks, AClockThatIsExchangedInTheMiddleIsNoticedAndConvertedFromThereOn) {
  clock_.restart();
  rounds(2);
  cupti_ = cycles_;
  g_now_ns += 200'000'000;
  EXPECT_TRUE(clock_.advance());
  rounds(2);
  EXPECT_NEAR(static_cast<double>(converted(cupti_, g_now_ns - 100'000'000)), static_cast<double>(g_now_ns - 100'000'000),
              50.0);
}

TEST_F(RecordClocks, AClockThatIsSetIsNotAnotherOne) {
  clock_.restart();
  rounds(2);
  cupti_.origin += 3'000'000'000;
  g_now_ns += 200'000'000;
  EXPECT_FALSE(clock_.advance());
  EXPECT_EQ(clock_.steps(), 1u);
}

// What cuptiGetTimestamp says is only believed as long as records agree with it.
TEST_F(RecordClocks, RecordsInTheCycleCounterAreFoundOutThoughCuptiSaysOtherwise) {
  clock_.restart();
  rounds(1);
  clock_.settle(cycles_.at(1'100'000'000));
  EXPECT_STREQ(clock_.name(), "cycles");
  EXPECT_FALSE(clock_.lost());
  rounds(2);
  EXPECT_NEAR(static_cast<double>(converted(cycles_, 1'500'000'000)), 1'500'000'000.0, 50.0);
}

TEST_F(RecordClocks, WithoutCuptisWordTheRecordsTell) {
  cupti_.broken = true;
  clock_.restart();
  EXPECT_TRUE(clock_.map().empty());
  rounds(1);
  clock_.settle(realtime_.at(1'100'000'000));
  EXPECT_STREQ(clock_.name(), "realtime");
  EXPECT_NEAR(static_cast<double>(converted(realtime_, 1'100'000'000)), 1'100'000'000.0, 50.0);
}

TEST_F(RecordClocks, ATimeOfNoKnownClockMakesAllTimesDoubtful) {
  clock_.restart();
  rounds(1);
  clock_.settle(9'000'000'000'000'000);
  EXPECT_TRUE(clock_.lost());
  EXPECT_FALSE(clock_.map().to_session(static_cast<std::int64_t>(cupti_.at(1'100'000'000))).certain);
  clock_.restart();
  EXPECT_FALSE(clock_.lost());
  EXPECT_TRUE(clock_.map().to_session(static_cast<std::int64_t>(cupti_.at(g_now_ns))).certain);
}

TEST_F(RecordClocks, ACallThatWasUnderWayAtTheRestartSettlesItToo) {
  clock_.restart();
  rounds(1);
  clock_.settle(cupti_.at(990'000'000));
  EXPECT_TRUE(clock_.settled());
  EXPECT_FALSE(clock_.lost());
}

}  // namespace
}  // namespace gpudiag
