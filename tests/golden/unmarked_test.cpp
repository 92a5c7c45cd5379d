// SPDX-License-Identifier: Apache-2.0
// Real traces of which the marks are taken away: the iterations that are found in the launches against
// the profiler's steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "attribution/engine.hpp"
#include "golden_text.hpp"
#include "traces_folder.hpp"

namespace gpudiag::golden {
namespace {

struct Kept final : RecordSink {
  std::vector<Record> records;
  void add(const Record& record) override { records.push_back(record); }
};

struct Found {
  std::vector<Interval> steps;      ///< the profiler's
  std::vector<IterationLedger> marked;
  std::vector<IterationLedger> unmarked;
  PatternState state;
};

std::vector<IterationLedger> ledgers_of(const std::vector<Record>& records, const NameTable& names, PatternState& state) {
  std::vector<IterationLedger> ledgers;
  Engine engine({}, names, [&](const IterationLedger& ledger) { ledgers.push_back(ledger); });
  for (const Record& record : records) engine.add(record);
  engine.finish();
  state = engine.pattern();
  return ledgers;
}

std::optional<Found> found_in(const std::string& name) {
  const std::filesystem::path path = traces_folder() / (name + ".json.gz");
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto trace = read_kineto(path);
  if (!trace) throw std::runtime_error{trace.error().message};
  Kept kept;
  trace->deliver(trace->processes().front().id, kept);
  Found found;
  found.marked = ledgers_of(kept.records, trace->names(), found.state);
  std::vector<Record> others;
  for (const Record& record : kept.records) {
    const bool step = record.kind == RecordKind::kRange && trace->names().text(record.name).starts_with("ProfilerStep");
    if (step) found.steps.push_back(record.interval());
    else if (record.kind != RecordKind::kMark) others.push_back(record);
  }
  found.unmarked = ledgers_of(others, trace->names(), found.state);
  return found;
}

bool same_window(const IterationLedger& a, const IterationLedger& b) {
  return a.start == b.start && a.wall == b.wall && a.launches == b.launches;
}

class StepsTakenAway : public ::testing::TestWithParam<const char*> {};

TEST_P(StepsTakenAway, AreFoundToTheNanosecond) {
  const auto found = found_in(GetParam());
  if (!found) GTEST_SKIP() << GetParam() << " " << kTraceSources;
  EXPECT_EQ(found->state.stage, PatternState::kFound);
  std::size_t whole = 0;
  for (const IterationLedger& ledger : found->unmarked) {
    if (ledger.phase != Phase::kTrain || ledger.partial) continue;
    ++whole;
    EXPECT_EQ(ledger.opened_by, MarkSource::kLaunchPattern);
    EXPECT_TRUE(std::ranges::any_of(found->marked, [&](const IterationLedger& one) { return same_window(one, ledger); }))
        << "from " << ledger.start.ns << " for " << ledger.wall.ns;
  }
  // The last one may be cut.
  EXPECT_GE(whole + 1, found->steps.size());
}

INSTANTIATE_TEST_SUITE_P(All, StepsTakenAway,
                         ::testing::Values("pytorch/resnet50_v100_workers0", "pytorch/resnet50_v100_workers4",
                                           "pytorch/a100_fsdp_rank3of8"),
                         [](const auto& name) {
                           std::string text = name.param;
                           for (char& c : text)
                             if (c == '/') c = '_';
                           return text;
                         });

class TooFewSteps : public ::testing::TestWithParam<const char*> {};

TEST_P(TooFewSteps, AreUndecidedAndStayWindows) {
  const auto found = found_in(GetParam());
  if (!found) GTEST_SKIP() << GetParam() << " " << kTraceSources;
  EXPECT_EQ(found->state.stage, PatternState::kUndecided);
  for (const IterationLedger& ledger : found->unmarked) {
    EXPECT_EQ(ledger.opened_by, MarkSource::kWindow);
    EXPECT_EQ(ledger.phase, Phase::kWindow);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TooFewSteps,
                         ::testing::Values("pytorch/a100_nccl_metadata", "pytorch/h100_qwen_0.5b",
                                           "pytorch/b200_eager_world8"),
                         [](const auto& name) {
                           std::string text = name.param;
                           for (char& c : text)
                             if (c == '/' || c == '.') c = '_';
                           return text;
                         });

// It was recorded without steps: 29 iterations of 335 launches, as the optimizer's kernels say.
TEST(TraceWithoutSteps, HasIterationsAllTheSame) {
  const auto found = found_in("pytorch/resnet_2080ti_input_stalls");
  if (!found) GTEST_SKIP() << kTraceSources;
  EXPECT_EQ(found->state.stage, PatternState::kFound);
  const auto whole = std::ranges::count_if(found->unmarked, [](const IterationLedger& ledger) {
    return ledger.phase == Phase::kTrain && !ledger.partial && ledger.launches == 335;
  });
  EXPECT_EQ(whole, 28);
}

}  // namespace
}  // namespace gpudiag::golden
