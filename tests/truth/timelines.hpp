// SPDX-License-Identifier: Apache-2.0
// Flow: [timelines] -> engine under test.
// Records of every degree of sense, for properties that must hold whatever the records say.
#pragma once

#include <cstdint>
#include <vector>

#include "record/names.hpp"
#include "record/record.hpp"

namespace gpudiag::truth {

inline constexpr std::uint32_t kSensibleIterations = 6;

/// What a tracer records of a random job (random_scenario); without ticks, so that the order of
/// delivery says nothing.
std::vector<Record> sensible_records(std::uint64_t seed, NameTable& names);

/// Calls, operations, ranges and marks at random times on a few threads and streams, with pieces
/// missing: each is well formed, together they need not make sense.
std::vector<Record> nonsense_records(std::uint64_t seed, NameTable& names);

/// Any value in any field, enumerators and flags within their range, times anywhere in 64 bits.
std::vector<Record> garbage_records(std::uint64_t seed);

/// The same records in another order, drawn from `seed`.
std::vector<Record> shuffled(std::vector<Record> records, std::uint64_t seed);
/// The same with every time `by` later.
std::vector<Record> shifted(std::vector<Record> records, DurationNs by);
/// The same with all threads, streams, contexts, events and correlations called otherwise.
std::vector<Record> renamed(std::vector<Record> records);

}  // namespace gpudiag::truth
