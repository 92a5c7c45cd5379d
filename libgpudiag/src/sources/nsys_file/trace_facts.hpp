// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// What an export says of itself, its machine and its devices, and what it lacks.
#pragma once

#include <cstdint>

#include "sources/nsys_file/builder.hpp"

namespace gpudiag::nsys_file {

/// Whether these are tables of Nsight Systems' at all.
bool is_nsys_export(const Database& database);

/// Which device a context is on, where no operation told. After the tables of operations.
void read_contexts(Builder& builder);

/// Time 0 of the rows in ns since 1970; 0 where it is not told.
std::int64_t unix_time_of_zero(Builder& builder);

/// Host, names of devices, warnings of the profiler; and a sentence for each table whose absence
/// matters. After all records.
void read_facts(Builder& builder);

}  // namespace gpudiag::nsys_file
