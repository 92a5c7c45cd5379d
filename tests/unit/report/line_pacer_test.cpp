// SPDX-License-Identifier: Apache-2.0
#include "report/line_pacer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledgers.hpp"

namespace gpudiag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using test::ledger;

constexpr TimePoint at_ms(std::int64_t ms) { return TimePoint{} + milliseconds(ms); }

class LinePacing : public ::testing::Test {
 protected:
  LinePacer pacer(bool every) {
    return LinePacer{0, every, [this](const std::string& line) { lines_.push_back(line); }};
  }
  std::vector<std::string> lines_;
};

TEST_F(LinePacing, TheFirstIterationIsPrintedAtOnce) {
  LinePacer pacing = pacer(false);
  pacing.add(ledger(0, 1'000'000), at_ms(0));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("iter 0  1.0 ms")));
}

TEST_F(LinePacing, WhatIsNoIterationIsCalledAWindowAndHasALineOfItsOwn) {
  LinePacer pacing = pacer(false);
  IterationLedger window = ledger(0, 1'000'000);
  window.phase = Phase::kWindow;
  pacing.add(window, at_ms(0));
  window.index = 1;
  pacing.add(window, at_ms(10));
  pacing.add(ledger(0, 2'000'000), at_ms(20));
  pacing.flush();
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("rank 0 window 0  1.0 ms"), HasSubstr("rank 0 window 1  1.0 ms"),
                                  HasSubstr("rank 0 iter 0  2.0 ms")));
}

TEST_F(LinePacing, FastIterationsShareALineASecond) {
  LinePacer pacing = pacer(false);
  for (std::uint64_t i = 0; i <= 250; ++i)
    pacing.add(ledger(i, 8'000'000), at_ms(static_cast<std::int64_t>(i) * 8));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("iter 0 "), HasSubstr("iter 1-125  8.0 ms ×125"),
                                  HasSubstr("iter 126-250  8.0 ms ×125")));
}

TEST_F(LinePacing, SlowIterationsHaveALineEach) {
  LinePacer pacing = pacer(false);
  pacing.add(ledger(0, 1), at_ms(0));
  pacing.add(ledger(1, 1), at_ms(1500));
  pacing.add(ledger(2, 1), at_ms(3000));
  EXPECT_THAT(lines_, SizeIs(3));
}

TEST_F(LinePacing, WhatWaitsIsPrintedWhenTheSecondIsOver) {
  LinePacer pacing = pacer(false);
  pacing.add(ledger(0, 1), at_ms(0));
  pacing.add(ledger(1, 1), at_ms(10));
  pacing.poll(at_ms(999));
  EXPECT_THAT(lines_, SizeIs(1));
  pacing.poll(at_ms(1000));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("iter 0 "), HasSubstr("iter 1 ")));
  pacing.poll(at_ms(5000));
  EXPECT_THAT(lines_, SizeIs(2));
}

TEST_F(LinePacing, TheEndPrintsWhatWaits) {
  LinePacer pacing = pacer(false);
  pacing.add(ledger(0, 1), at_ms(0));
  pacing.add(ledger(1, 1), at_ms(1));
  pacing.flush();
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("iter 0 "), HasSubstr("iter 1 ")));
}

TEST_F(LinePacing, EveryIterationIsPrintedWhereAskedFor) {
  LinePacer pacing = pacer(true);
  for (std::uint64_t i = 0; i < 3; ++i) pacing.add(ledger(i, 1), at_ms(0));
  EXPECT_THAT(lines_, SizeIs(3));
}

TEST_F(LinePacing, TheDevicesOfARankAreNamedAndShareTheSecond) {
  LinePacer pacing = pacer(false);
  pacing.expect_devices(2);
  IterationLedger other = ledger(0, 1);
  other.device = DeviceId{1};
  pacing.add(ledger(0, 1), at_ms(0));
  pacing.add(other, at_ms(1));
  pacing.add(ledger(1, 1), at_ms(2));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("rank 0 dev 0 iter 0 ")));
  pacing.poll(at_ms(1000));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("dev 0 iter 0 "), HasSubstr("dev 0 iter 1 "),
                                  HasSubstr("dev 1 iter 0 ")));
}

TEST_F(LinePacing, NothingIsPrintedWithoutIterations) {
  LinePacer pacing = pacer(false);
  pacing.poll(at_ms(5000));
  pacing.flush();
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(LinePacing, EvaluationHasALineOfItsOwn) {
  LinePacer pacing = pacer(false);
  pacing.add(ledger(6, 1'000'000), at_ms(0));
  pacing.add(ledger(7, 8'000'000), at_ms(10));
  for (int batch = 0; batch < 3; ++batch) {
    IterationLedger evaluation = ledger(8, 2'000'000);
    evaluation.phase = Phase::kEvaluation;
    pacing.add(evaluation, at_ms(20));
  }
  pacing.add(ledger(8, 8'000'000), at_ms(30));
  pacing.poll(at_ms(1000));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("iter 6 "), HasSubstr(" iter 7-8  8.0 ms ×2"),
                                  HasSubstr("rank 0 evaluation before iter 8  2.0 ms ×3")));
}

}  // namespace
}  // namespace gpudiag
