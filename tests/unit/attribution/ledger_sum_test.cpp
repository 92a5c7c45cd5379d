// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger_sum.hpp"

#include <gtest/gtest.h>

#include "attribution/evidence_sums.hpp"
#include "unit/report/ledgers.hpp"

namespace gpudiag {
namespace {

using test::evidence;
using test::ledger;

TEST(LedgerSum, AddsEveryPartAndKeepsTheIdentity) {
  IterationLedger one = ledger(1, 100, {{Cause::kSync, 10}, {Cause::kHost, 5}});
  one.communication = DurationNs{7};
  one.copy = DurationNs{3};
  one.wall += DurationNs{10};
  one.own = DurationNs{1};
  LedgerSum sum;
  sum.add(one);
  sum.add(one);
  EXPECT_EQ(sum.iterations, 2u);
  EXPECT_EQ(sum.wall, DurationNs{250});
  EXPECT_EQ(sum.idle_of(Cause::kSync), DurationNs{20});
  EXPECT_EQ(sum.cost_of(Cause::kHost), DurationNs{10});
  EXPECT_EQ(sum.own, DurationNs{2});
  EXPECT_EQ(sum.launches, 2u);
  EXPECT_EQ(sum.wall, sum.compute + sum.communication + sum.copy + sum.idle);
}

TEST(LedgerSum, AWaitThatOneIterationDoesNotKnowIsNotKnownOfTheSum) {
  IterationLedger known = ledger(1, 100);
  known.straggler_wait = DurationNs{4};
  LedgerSum sum;
  sum.add(known);
  sum.add(known);
  EXPECT_EQ(sum.straggler_wait, DurationNs{8});
  sum.add(ledger(2, 100));
  EXPECT_EQ(sum.straggler_wait, std::nullopt);
  sum.add(known);
  EXPECT_EQ(sum.straggler_wait, std::nullopt);
}

TEST(LedgerSum, TheSubCauseWithMostIsTheDominantOne) {
  IterationLedger made = ledger(1, 100);
  made.evidence = {evidence(Cause::kSync, SubCause::kItem, "aten::item", 5),
                   evidence(Cause::kSync, SubCause::kStreamSync, "cudaStreamSynchronize", 9),
                   evidence(Cause::kSync, SubCause::kItem, "aten::is_nonzero", 6),
                   evidence(Cause::kHost, SubCause::kNone, "print", 90)};
  const LedgerSum sum = sum_of(made);
  EXPECT_EQ(sum.sub_causes.dominant(Cause::kSync), SubCause::kItem);
  EXPECT_EQ(sum.sub_causes.dominant(Cause::kHost), SubCause::kNone);
}

TEST(LedgerSum, AFractionWithASubCauseDoesNotNameTheRest) {
  IterationLedger made = ledger(1, 100);
  made.evidence = {evidence(Cause::kHost, SubCause::kGarbageCollection, "gc", 1),
                   evidence(Cause::kHost, SubCause::kNone, "", 90)};
  EXPECT_EQ(sum_of(made).sub_causes.dominant(Cause::kHost), SubCause::kNone);
}

TEST(EvidenceSums, WhatBeganInAnotherIterationHasNoTimeOfItsOwn) {
  IterationLedger began = ledger(1, 100);
  began.evidence = {evidence(Cause::kSync, SubCause::kItem, "cudaStreamSynchronize", 5)};
  began.evidence[0].count = 1;
  began.evidence[0].longest_at = TimePoint{1'700};
  IterationLedger felt = ledger(2, 100);
  felt.evidence = {evidence(Cause::kSync, SubCause::kItem, "cudaStreamSynchronize", 90)};
  felt.evidence[0].count = 0;
  EvidenceSums sums;
  sums.add(felt, TimePoint{1'000});
  EXPECT_EQ(sums.of(Cause::kSync)[0].total.longest_at, kTimeMin);
  sums.add(began, TimePoint{1'000});
  sums.add(felt, TimePoint{1'000});
  ASSERT_EQ(sums.of(Cause::kSync).size(), 1u);
  EXPECT_EQ(sums.of(Cause::kSync)[0].example, 1u);
  EXPECT_EQ(sums.of(Cause::kSync)[0].total.longest_at, TimePoint{700});
}

}  // namespace
}  // namespace gpudiag
