// SPDX-License-Identifier: Apache-2.0
// What must hold whatever the records say: the identity, and that a ledger depends on neither the
// order of delivery, nor the origin of the clock, nor what threads and streams are called.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/analyse.hpp"
#include "timelines.hpp"

namespace gpudiag::truth {
namespace {

using testing::analyse;
using testing::Analysis;

constexpr std::uint64_t kSensible = 12;
constexpr std::uint64_t kNonsense = 60;
constexpr std::uint64_t kGarbage = 300;

void expect_identity(const Analysis& analysis, std::uint64_t seed) {
  for (const IterationLedger& ledger : analysis.ledgers) {
    DurationNs idle;
    for (DurationNs part : ledger.idle_by_cause) {
      idle += part;
      ASSERT_GE(part, DurationNs{}) << "seed " << seed;
    }
    ASSERT_EQ(ledger.idle, idle) << "seed " << seed;
    ASSERT_EQ(ledger.wall, ledger.compute + ledger.communication + ledger.copy + ledger.idle)
        << "seed " << seed;
    ASSERT_GE(std::min({ledger.compute, ledger.communication, ledger.copy, ledger.idle}),
              DurationNs{})
        << "seed " << seed;
  }
}

// Everything a ledger says but the names of threads, a line each, in the order of time.
std::string text_of(const Analysis& analysis, DurationNs shift = {}) {
  std::vector<std::string> lines;
  for (const IterationLedger& l : analysis.ledgers) {
    std::string line = fmt::format(
        "dev {} start {:>20} iter {} '{}' wall {} host {} busy {} {} {} idle {} totals {} {} "
        "launches {} ops {}",
        raw(l.device), l.empty ? 0 : (l.start - shift).ns, l.index, l.label, l.wall.ns,
        l.host_step.ns, l.compute.ns, l.communication.ns, l.copy.ns, l.idle.ns,
        l.communication_total.ns, l.copy_total.ns, l.launches, l.operations);
    for (DurationNs part : l.idle_by_cause) line += fmt::format(" {}", part.ns);
    line += " replay";
    for (DurationNs part : l.replay_cost) line += fmt::format(" {}", part.ns);
    line += fmt::format(" {} {} {} invalid", l.replay_cost_communication.ns, l.replay_cost_copy.ns,
                        l.replay_cost_all_host.ns);
    for (std::uint64_t count : l.invalid) line += fmt::format(" {}", count);
    if (l.partial) line += " partial";
    if (l.empty) line += " empty";
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  for (std::uint64_t count : analysis.quality.defects) text += fmt::format("{} ", count);
  return text;
}

TEST(Identity, HoldsOnSensibleRecords) {
  for (std::uint64_t seed = 0; seed < kSensible; ++seed) {
    NameTable names;
    expect_identity(analyse(sensible_records(seed, names), names), seed);
  }
}

TEST(Identity, IsNotHeldByLeavingIterationsOut) {
  for (std::uint64_t seed = 0; seed < kSensible; ++seed) {
    NameTable names;
    const auto analysis = analyse(sensible_records(seed, names), names);
    ASSERT_GE(testing::ledgers_of(analysis, DeviceId{0}).size(), kSensibleIterations)
        << "seed " << seed;
    DurationNs busy;
    for (const IterationLedger& ledger : analysis.ledgers) busy += ledger.compute;
    ASSERT_GT(busy, DurationNs{}) << "seed " << seed;
  }
}

TEST(Identity, HoldsOnNonsense) {
  for (std::uint64_t seed = 0; seed < kNonsense; ++seed) {
    NameTable names;
    expect_identity(analyse(nonsense_records(seed, names), names), seed);
  }
}

TEST(Identity, HoldsOnGarbageWhichHarmsNothing) {
  const NameTable names;
  for (std::uint64_t seed = 0; seed < kGarbage; ++seed)
    expect_identity(analyse(garbage_records(seed), names), seed);
}

TEST(Identity, WindowsOfOneDevicePartitionItsTime) {
  for (std::uint64_t seed = 0; seed < kSensible; ++seed) {
    NameTable names;
    const auto analysis = analyse(sensible_records(seed, names), names);
    auto ledgers = testing::ledgers_of(analysis, DeviceId{0});
    std::stable_sort(ledgers.begin(), ledgers.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
    for (std::size_t i = 1; i < ledgers.size(); ++i)
      ASSERT_EQ(ledgers[i].start, ledgers[i - 1].start + ledgers[i - 1].wall)
          << "seed " << seed << ", window " << i;
  }
}

TEST(Order, OfDeliveryDoesNotMatterForSensibleRecords) {
  for (std::uint64_t seed = 0; seed < kSensible; ++seed) {
    NameTable names;
    const auto records = sensible_records(seed, names);
    ASSERT_EQ(text_of(analyse(records, names)), text_of(analyse(shuffled(records, seed), names)))
        << "seed " << seed;
  }
}

TEST(Order, OfDeliveryDoesNotMatterForNonsense) {
  for (std::uint64_t seed = 0; seed < kNonsense; ++seed) {
    NameTable names;
    const auto records = nonsense_records(seed, names);
    ASSERT_EQ(text_of(analyse(records, names)), text_of(analyse(shuffled(records, seed), names)))
        << "seed " << seed;
  }
}

TEST(Clock, ShiftChangesNothingButTheStart) {
  const DurationNs shift = seconds(86'400 * 365);
  for (std::uint64_t seed = 0; seed < kSensible; ++seed) {
    NameTable names;
    const auto records = sensible_records(seed, names);
    ASSERT_EQ(text_of(analyse(records, names)),
              text_of(analyse(shifted(records, shift), names), shift))
        << "seed " << seed;
  }
}

TEST(Clock, ShiftChangesNothingButTheStartOfNonsense) {
  const DurationNs shift = seconds(-7);
  for (std::uint64_t seed = 0; seed < kNonsense; ++seed) {
    NameTable names;
    const auto records = nonsense_records(seed, names);
    ASSERT_EQ(text_of(analyse(records, names)),
              text_of(analyse(shifted(records, shift), names), shift))
        << "seed " << seed;
  }
}

TEST(Names, OfThreadsStreamsAndCorrelationsDoNotMatter) {
  for (std::uint64_t seed = 0; seed < kSensible; ++seed) {
    NameTable names;
    const auto records = sensible_records(seed, names);
    ASSERT_EQ(text_of(analyse(records, names)), text_of(analyse(renamed(records), names)))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpudiag::truth
