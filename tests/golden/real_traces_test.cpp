// SPDX-License-Identifier: Apache-2.0
// Traces that other people recorded on real GPUs: the engine's busy times against a sweep of our
// own and against what other tools print for the same file.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "golden_text.hpp"
#include "sweep.hpp"
#include "traces_folder.hpp"

namespace gpudiag::golden {
namespace {

struct Kept final : RecordSink {
  std::vector<Record> records;
  void add(const Record& record) override { records.push_back(record); }
};

/// A trace with what the engine and what the sweep say of its one device.
struct Analysed {
  SweptTimes swept;
  SweptTimes trace_lens;  ///< the sweep on TraceLens's terms
  SweptTimes charged;     ///< the engine's, summed over iterations
  ProcessLedgers ledgers;
};

std::optional<Analysed> analysed(const std::string& name) {
  const std::filesystem::path path = traces_folder() / (name + ".json.gz");
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto trace = read_kineto(path);
  if (!trace) throw std::runtime_error{trace.error().message};
  Kept kept;
  trace->deliver(trace->processes().front().id, kept);
  Analysed result;
  result.ledgers = std::move(analyse(*trace).front());
  const DeviceId device = result.ledgers.ledgers.at(0).device;
  result.swept = sweep(kept.records, device, trace->names());
  result.trace_lens = sweep(kept.records, device, trace->names(), Reading::kTraceLens);
  for (const IterationLedger& ledger : result.ledgers.ledgers) {
    result.charged.wall += ledger.wall.ns;
    result.charged.compute += ledger.compute.ns;
    result.charged.communication += ledger.communication.ns;
    result.charged.copy += ledger.copy.ns;
    result.charged.idle += ledger.idle.ns;
    result.charged.communication_in_all += ledger.communication_total.ns;
    result.charged.copy_in_all += ledger.copy_total.ns;
  }
  return result;
}

class RealTrace : public ::testing::TestWithParam<const char*> {};

TEST_P(RealTrace, BusyTimesEqualAnIndependentSweep) {
  const auto result = analysed(GetParam());
  if (!result) GTEST_SKIP() << GetParam() << " " << kTraceSources;
  EXPECT_EQ(result->charged.wall, result->swept.wall);
  EXPECT_EQ(result->charged.compute, result->swept.compute);
  EXPECT_EQ(result->charged.communication, result->swept.communication);
  EXPECT_EQ(result->charged.copy, result->swept.copy);
  EXPECT_EQ(result->charged.idle, result->swept.idle);
  EXPECT_EQ(result->charged.communication_in_all, result->swept.communication_in_all);
  EXPECT_EQ(result->charged.copy_in_all, result->swept.copy_in_all);
}

TEST_P(RealTrace, TheIdentityHoldsInEachIteration) {
  const auto result = analysed(GetParam());
  if (!result) GTEST_SKIP() << GetParam() << " " << kTraceSources;
  for (const IterationLedger& ledger : result->ledgers.ledgers) {
    DurationNs idle;
    for (const DurationNs part : ledger.idle_by_cause) idle += part;
    EXPECT_EQ(idle, ledger.idle) << ledger.label;
    EXPECT_EQ(ledger.wall, ledger.compute + ledger.communication + ledger.copy + ledger.idle)
        << ledger.label;
    EXPECT_EQ(ledger.invalid, IterationLedger{}.invalid) << ledger.label;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RealTrace,
    ::testing::Values("pytorch/resnet50_v100_workers0", "pytorch/resnet50_v100_workers4",
                      "pytorch/resnet_2080ti_input_stalls", "pytorch/a100_fsdp_rank3of8",
                      "pytorch/a100_nccl_metadata", "pytorch/h100_qwen_0.5b",
                      "pytorch/b200_eager_world8", "dlrm_8_ranks/rank0", "dlrm_8_ranks/rank1",
                      "dlrm_8_ranks/rank2", "dlrm_8_ranks/rank3", "dlrm_8_ranks/rank4",
                      "dlrm_8_ranks/rank5", "dlrm_8_ranks/rank6", "dlrm_8_ranks/rank7"),
    [](const auto& name) {
      std::string text = name.param;
      for (char& c : text)
        if (c == '/' || c == '.') c = '_';
      return text;
    });

/// What TraceLens (AMD-AGI, at 171dd747) prints, in ms over the whole trace.
struct TraceLensRow {
  const char* trace;
  double computation, exposed_communication, exposed_copy, idle, total, communication, copy;
};

class TraceLensAgrees : public ::testing::TestWithParam<TraceLensRow> {};

// So the sweep that the engine equals differs from TraceLens in the two terms that sweep.hpp names,
// and in nothing else.
TEST_P(TraceLensAgrees, ToItsRounding) {
  const TraceLensRow& row = GetParam();
  const auto result = analysed(row.trace);
  if (!result) GTEST_SKIP() << row.trace << " " << kTraceSources;
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  constexpr double kRounding = 0.00501;
  const SweptTimes& swept = result->trace_lens;
  EXPECT_NEAR(ms(swept.compute), row.computation, kRounding);
  EXPECT_NEAR(ms(swept.communication), row.exposed_communication, kRounding);
  EXPECT_NEAR(ms(swept.copy), row.exposed_copy, kRounding);
  EXPECT_NEAR(ms(swept.communication_in_all), row.communication, kRounding);
  EXPECT_NEAR(ms(swept.copy_in_all), row.copy, kRounding);
  EXPECT_NEAR(ms(result->charged.idle), row.idle, kRounding);
  EXPECT_NEAR(ms(result->charged.wall), row.total, kRounding);
}

INSTANTIATE_TEST_SUITE_P(
    All, TraceLensAgrees,
    ::testing::Values(TraceLensRow{"pytorch/a100_fsdp_rank3of8", 282.58, 87.27, 18.74, 76.01,
                                   464.59, 163.53, 53.45},
                      TraceLensRow{"pytorch/a100_nccl_metadata", 116.05, 39.53, 1.92, 503.05,
                                   660.55, 46.88, 2.26},
                      TraceLensRow{"pytorch/b200_eager_world8", 10.77, 0.02, 0.80, 72.89, 84.49,
                                   0.02, 0.80},
                      TraceLensRow{"pytorch/h100_qwen_0.5b", 45.64, 0, 0, 4.01, 49.65, 0, 0},
                      TraceLensRow{"pytorch/resnet_2080ti_input_stalls", 4103.75, 0, 630.07,
                                   9789.09, 14522.91, 0, 630.07}),
    [](const auto& row) {
      std::string text = row.param.trace;
      for (char& c : text)
        if (c == '/' || c == '.') c = '_';
      return text;
    });

/// HolisticTraceAnalysis 0.5.0 drops the last ProfilerStep and takes everything on a stream for
/// busy, so it is comparable only where there are no steps.
TEST(HolisticTraceAnalysis, SeesTheSameIdleShareWhereThereAreNoSteps) {
  const std::map<std::string, double> idle{{"pytorch/resnet_2080ti_input_stalls", 67.40},
                                           {"dlrm_8_ranks/rank0", 49.34},
                                           {"dlrm_8_ranks/rank1", 34.28},
                                           {"dlrm_8_ranks/rank2", 62.08},
                                           {"dlrm_8_ranks/rank3", 43.20},
                                           {"dlrm_8_ranks/rank4", 53.57},
                                           {"dlrm_8_ranks/rank5", 55.64},
                                           {"dlrm_8_ranks/rank6", 61.80},
                                           {"dlrm_8_ranks/rank7", 75.75}};
  for (const auto& [name, percent] : idle) {
    const auto result = analysed(name);
    if (!result) GTEST_SKIP() << name << " " << kTraceSources;
    const double ours = 100.0 * static_cast<double>(result->charged.idle) /
                        static_cast<double>(result->charged.wall);
    EXPECT_NEAR(ours, percent, 0.00501) << name;
  }
}

}  // namespace
}  // namespace gpudiag::golden
