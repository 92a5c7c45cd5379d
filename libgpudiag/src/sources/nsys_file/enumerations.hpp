// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// What the numbers of an export stand for. The file's own ENUM_ tables say; where it has none, the
// numbers of schema 3 hold.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "record/record.hpp"
#include "sources/nsys_file/row_reader.hpp"

namespace gpudiag::nsys_file {

/// How a row of the copies becomes a record.
struct CopyOperation {
  CopyKind kind = CopyKind::kUnknown;
  bool unified_memory = false;  ///< the driver moved pages; no call asked for it
};

enum class NvtxKind : std::uint8_t { kOther, kRange, kMark };

struct Enumerations {
  Enumerations(Database& database, Reading& reading);

  CopyOperation copy(std::int64_t id) const;
  bool is_pageable(std::int64_t memory_kind) const;
  SyncKind sync(std::int64_t id) const;
  NvtxKind nvtx(std::int64_t event_type) const;
  /// Overhead of the profiler in the job, not of the job's own driver.
  bool is_profilers(std::int64_t overhead_type) const;

  template <typename Value>
  using ById = std::unordered_map<std::int64_t, Value>;
  ById<CopyOperation> copies;
  ById<bool> pageable;
  ById<SyncKind> syncs;
  ById<NvtxKind> nvtx_kinds;
  ById<bool> profilers;
};

}  // namespace gpudiag::nsys_file
