// SPDX-License-Identifier: Apache-2.0
#include "timeline/range_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace gpudiag {
namespace {

RangeLabel label_of(std::string_view name, const std::vector<std::string>& rules = {},
                    const std::string& pattern = {}) {
  NameTable names;
  Record range;
  range.kind = RecordKind::kRange;
  range.name = names.intern(name);
  RangeTable table(rules, pattern, names);
  return table.label_of(range);
}

TEST(RangeTable, LoaderOfOneProcessIsInlineAndOfWorkersWaits) {
  const auto single = label_of("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  EXPECT_EQ(single.cause, Cause::kDataLoading);
  EXPECT_EQ(single.mode, BatchMode::kInline);
  const auto workers = label_of("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
  EXPECT_EQ(workers.cause, Cause::kDataLoading);
  EXPECT_EQ(workers.mode, BatchMode::kWait);
}

TEST(RangeTable, AWaitInWhichTheThreadDidNotBlockHadItsBatchReady) {
  NameTable names;
  Record range;
  range.kind = RecordKind::kRange;
  range.name = names.intern("wait_for_batch");
  RangeTable table({}, {}, names);
  EXPECT_EQ(table.label_of(range).mode, BatchMode::kWait);
  range.flags = record_flag::kNotBlocked;
  EXPECT_EQ(table.label_of(range).cause, Cause::kDataLoading);
  EXPECT_EQ(table.label_of(range).mode, BatchMode::kInline);
}

TEST(RangeTable, StartingWorkersIsTheCallersOwnWork) {
  const auto start = label_of("DataLoader.__iter__");
  EXPECT_EQ(start.cause, Cause::kDataLoading);
  EXPECT_EQ(start.sub_cause, SubCause::kWorkerStart);
  EXPECT_EQ(start.mode, BatchMode::kInline);
}

TEST(RangeTable, AWaitMaySayForWhom) {
  EXPECT_EQ(label_of("wait for batch: DALIGenericIterator").cause, Cause::kDataLoading);
  EXPECT_EQ(label_of("wait for batch: DALIGenericIterator").mode, BatchMode::kWait);
  EXPECT_EQ(label_of("wait for batches").meaning, RangeMeaning::kNothing);
}

TEST(RangeTable, CompilationIsHostTime) {
  EXPECT_EQ(label_of("torch.compile").cause, Cause::kHost);
  EXPECT_EQ(label_of("torch.compile").sub_cause, SubCause::kCompile);
}

TEST(RangeTable, GenericLoadingRangeIsInline) {
  for (const auto* name : {"data_loading", "next_batch", "dataloader", "## load_batch ##", "next(loader)",
                           "next(data_iter)"}) {
    EXPECT_EQ(label_of(name).meaning, RangeMeaning::kOwner) << name;
    EXPECT_EQ(label_of(name).cause, Cause::kDataLoading) << name;
    EXPECT_EQ(label_of(name).mode, BatchMode::kInline) << name;
  }
}

TEST(RangeTable, CollectionsAreKnownByTheNamesTheyAreGiven) {
  for (const auto* name : {"gc", "gc:2", "GC generation 2", "gc.collect", "Python GC", "garbage collection"})
    EXPECT_EQ(label_of(name).sub_cause, SubCause::kGarbageCollection) << name;
  for (const auto* name : {"gcn_forward", "next(model)", "next token"})
    EXPECT_EQ(label_of(name).meaning, RangeMeaning::kNothing) << name;
}

TEST(RangeTable, ItemIsWeakSoThatAnAllocationInsideKeepsItsName) {
  EXPECT_EQ(label_of("aten::item").meaning, RangeMeaning::kWeak);
  EXPECT_EQ(label_of("aten::_local_scalar_dense").cause, Cause::kSync);
}

TEST(RangeTable, StepsOfTheProfilerAndNumberedRangesAreIterations) {
  EXPECT_EQ(label_of("ProfilerStep#17").mark, MarkSource::kProfilerStep);
  EXPECT_EQ(label_of("iteration 12").meaning, RangeMeaning::kIteration);
  EXPECT_EQ(label_of("train_step#3").mark, MarkSource::kPattern);
  EXPECT_EQ(label_of("optimizer step").meaning, RangeMeaning::kNothing);
  EXPECT_EQ(label_of("aten::mm").meaning, RangeMeaning::kNothing);
}

TEST(RangeTable, BareNameOfAStepIsAnIterationAndAPartOfAnotherNameIsNot) {
  for (const auto* name : {"step", "iteration", "Iter", "train_step", "training step", "trainstep"})
    EXPECT_EQ(label_of(name).meaning, RangeMeaning::kIteration) << name;
  for (const auto* name : {"steps", "optimizer.step", "step 7 of 9", "forward step", "train", ""})
    EXPECT_EQ(label_of(name).meaning, RangeMeaning::kNothing) << name;
}

TEST(RangeTable, EndlessNameIsJudgedByItsBeginningAndOverflowsNoStack) {
  const std::string endless(1'000'000, 'x');
  EXPECT_EQ(label_of(endless).meaning, RangeMeaning::kNothing);
  EXPECT_EQ(label_of("DataLoader.__next__" + endless).cause, Cause::kDataLoading);
  EXPECT_EQ(label_of(endless + "DataLoader.__next__").meaning, RangeMeaning::kNothing);
  EXPECT_EQ(label_of(endless, {"^(x|y)*=sync"}).cause, Cause::kSync);
}

TEST(RangeTable, UsersPatternStandsForTheBuiltInOne) {
  EXPECT_EQ(label_of("epoch/7", {}, "^epoch/[0-9]+$").meaning, RangeMeaning::kIteration);
  EXPECT_EQ(label_of("iteration 12", {}, "^epoch/[0-9]+$").meaning, RangeMeaning::kNothing);
}

TEST(RangeTable, UsersRuleComesFirst) {
  const auto label = label_of("torch.save", {"^torch\\.save$=data_loading:too_few_workers"});
  EXPECT_EQ(label.cause, Cause::kDataLoading);
  EXPECT_EQ(label.sub_cause, SubCause::kTooFewWorkers);
  EXPECT_EQ(label.mode, BatchMode::kWait);
}

TEST(RangeTable, RuleThatCannotBeReadIsNamedAndTheOthersStand) {
  NameTable names;
  RangeTable table({"(=sync", "x=nonsense", "no rule", "mine=checkpoint"}, "", names);
  EXPECT_EQ(table.errors().size(), 3u);
  Record range;
  range.name = names.intern("mine");
  EXPECT_EQ(table.label_of(range).cause, Cause::kCheckpoint);
}

TEST(RangeTable, SaysInWordsWhatIsWrongWithAPattern) {
  const NameTable names;
  const RangeTable iteration{{}, "(", names};
  ASSERT_EQ(iteration.errors().size(), 1u);
  EXPECT_EQ(iteration.errors()[0], "GPUDIAG_ITERATION '(' is no regular expression: a parenthesis has no partner");
  const RangeTable rules{{"[=host", "*=host"}, "", names};
  ASSERT_EQ(rules.errors().size(), 2u);
  EXPECT_EQ(rules.errors()[0], "range rule '[' is no regular expression: a bracket has no partner");
  EXPECT_EQ(rules.errors()[1], "range rule '*' is no regular expression: nothing stands before *, + or ?");
}

TEST(RangeTable, CauseThatTheRecordCarriesBeatsItsName) {
  NameTable names;
  RangeTable table({}, "", names);
  Record range;
  range.name = names.intern("torch.save");
  range.cause = static_cast<std::uint8_t>(Cause::kCommunicationWait) + 1;
  EXPECT_EQ(table.label_of(range).cause, Cause::kCommunicationWait);
}

TEST(RangeTable, NumberStandsAtTheEndOfAName) {
  EXPECT_EQ(number_in("ProfilerStep#1009"), 1009u);
  EXPECT_EQ(number_in("step"), std::nullopt);
  EXPECT_EQ(number_in(""), std::nullopt);
  EXPECT_EQ(number_in("step 99999999999999999999999"), std::nullopt);
}

}  // namespace
TEST(RangeTable, WorkersAreWaitedForButNotAccused) {
  const auto label = label_of("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", {});
  EXPECT_EQ(label.cause, Cause::kDataLoading);
  EXPECT_EQ(label.sub_cause, SubCause::kNone);
  EXPECT_EQ(label.mode, BatchMode::kWait);
}

TEST(RangeTable, NameThatSaysWaitLeavesTheBatchToOthersWhoeverGaveTheCause) {
  EXPECT_EQ(label_of("wait_for_batch").mode, BatchMode::kWait);
  EXPECT_EQ(label_of("batch wait").mode, BatchMode::kWait);
  NameTable names;
  Record range;
  range.kind = RecordKind::kRange;
  range.cause = 1 + static_cast<std::uint8_t>(Cause::kDataLoading);
  RangeTable table({}, {}, names);
  range.name = names.intern("wait_for_batch");
  EXPECT_EQ(table.label_of(range).mode, BatchMode::kWait);
  range.name = names.intern("next_batch");
  EXPECT_EQ(table.label_of(range).mode, BatchMode::kInline);
}

TEST(RangeTable, RuleCanSayThatOthersMakeTheBatch) {
  const auto label = label_of("fetch", {"^fetch$=data_loading:wait"});
  EXPECT_EQ(label.cause, Cause::kDataLoading);
  EXPECT_EQ(label.sub_cause, SubCause::kNone);
  EXPECT_EQ(label.mode, BatchMode::kWait);
}

// Each of these would end the process, or keep it busy for years, in a matcher that takes what it gets.
TEST(RangeTable, PatternThatIsTooLongOrTooDeepIsRefusedInAShortMessage) {
  const std::string opened(60'000, '(');
  const std::string closed = std::string(30'000, '(') + std::string(30'000, ')');
  const std::string nested = std::string(21, '(') + 'x' + std::string(21, ')');
  for (const std::string& pattern : {opened, closed, nested, std::string(1001, 'x')}) {
    NameTable names;
    const RangeTable table({pattern + "=host"}, pattern, names);
    ASSERT_EQ(table.errors().size(), 2u);
    EXPECT_LT(table.errors()[0].size(), 300u);
  }
}

TEST(RangeTable, PatternsOfTheLargestSizesAllowedAreUsed) {
  const std::string nested = std::string(20, '(') + 'x' + std::string(20, ')');
  EXPECT_EQ(label_of("x", {nested + "=checkpoint"}).cause, Cause::kCheckpoint);
  EXPECT_EQ(label_of(std::string(1000, 'x'), {std::string(1000, 'x') + "=checkpoint"}).cause, Cause::kCheckpoint);
}

TEST(RangeTable, PatternThatBacktracksWithoutEndIsMatchedAllTheSame) {
  const std::string name(1000, 'a');
  EXPECT_EQ(label_of(name, {"(.*)*(.*)*(.*)*(.*)*q=checkpoint"}).meaning, RangeMeaning::kNothing);
  EXPECT_EQ(label_of(name + 'q', {"^(a|aa)+q$=checkpoint"}).cause, Cause::kCheckpoint);
}

}  // namespace gpudiag
