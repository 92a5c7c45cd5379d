// SPDX-License-Identifier: Apache-2.0
//
// The script of sensors: what its lines mean, and what is said about wrong ones.
#include "../script.hpp"

#include <gtest/gtest.h>

using namespace simgpu::nvml;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Script parse(const char* text) {
  std::string error;
  Script script = Script::parse(text, error);
  EXPECT_EQ(error, "");
  return script;
}

std::string error_of(const char* text) {
  std::string error;
  Script::parse(text, error);
  return error;
}

}  // namespace

TEST(Script, AValueHoldsFromItsTimeUntilTheNext) {
  const Script script = parse("0 * power=100000\n250ms * power=650000 # the job starts\n");
  EXPECT_EQ(script.at(0, Field::kPower, 0).number, 100'000);
  EXPECT_EQ(script.at(0, Field::kPower, 250 * kMs - 1).number, 100'000);
  EXPECT_EQ(script.at(0, Field::kPower, 250 * kMs).number, 650'000);
  EXPECT_EQ(script.at(0, Field::kTemperature, 0).state, Reading::State::kUnset);
}

TEST(Script, ALineForOneDeviceLeavesTheOthersAlone) {
  const Script script = parse("0 * temperature=40\n0 1 temperature=90\n");
  EXPECT_EQ(script.at(0, Field::kTemperature, 5).number, 40);
  EXPECT_EQ(script.at(1, Field::kTemperature, 5).number, 90);
}

TEST(Script, AFieldCanBeNotSupported) {
  const Script script = parse("0 * fan=n/a throttle=0x44\n");
  EXPECT_EQ(script.at(0, Field::kFan, 0).state, Reading::State::kNotSupported);
  EXPECT_EQ(script.at(0, Field::kThrottleReasons, 0).number, 0x44);
}

TEST(Script, RepeatStartsItOver) {
  const Script script = parse("0 * utilization.gpu=10\n1s * utilization.gpu=90\nrepeat 2s\n");
  EXPECT_EQ(script.at(0, Field::kUtilizationGpu, 1'500 * kMs).number, 90);
  EXPECT_EQ(script.at(0, Field::kUtilizationGpu, 2'500 * kMs).number, 10);
  EXPECT_EQ(script.at(0, Field::kUtilizationGpu, 3'000 * kMs).number, 90);
}

TEST(Script, AWrongLineIsNamedAndTheLinesBeforeItHold) {
  EXPECT_EQ(error_of("0 * power=1\nsoon * power=2\n"), "line 2: \"soon\" is no time like 250ms");
  EXPECT_EQ(error_of("0 gpu power=2\n"), "line 1: \"gpu\" is no device: a number or *");
  EXPECT_EQ(error_of("0 * watts=2\n"),
            "line 1: \"watts=2\" is no setting of a field, like power=650000 or fan=n/a");
  EXPECT_EQ(error_of("0 * power\n"),
            "line 1: \"power\" is no setting of a field, like power=650000 or fan=n/a");
  EXPECT_EQ(error_of("5ms\n"), "line 1: expected TIME DEVICE FIELD=VALUE, found only \"5ms\"");
  std::string error;
  EXPECT_EQ(Script::parse("0 * power=7\nsoon * power=2\n", error).size(), 1U);
}
