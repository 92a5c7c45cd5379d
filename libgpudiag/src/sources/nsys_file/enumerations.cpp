// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/enumerations.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace gpudiag::nsys_file {
namespace {

constexpr auto kMarks = std::to_array<std::string_view>({"NvtxMark", "NvtxtMark"});
constexpr auto kRanges = std::to_array<std::string_view>(
    {"NvtxPushPopRange", "NvtxStartEndRange", "NvtxtPushPopRange", "NvtxtStartEndRange"});

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  for (const std::string_view each : names)
    if (each == name) return true;
  return false;
}

/// "CUDA_MEMCPY_KIND_UVM_HTOD".
CopyOperation copy_named(std::string_view name) {
  const bool unified = name.find("UVM") != name.npos;
  const auto ends = [name](std::string_view end) { return name.ends_with(end); };
  if (ends("PTOP")) return {CopyKind::kPeer, unified};
  if (ends("HTOH")) return {CopyKind::kHostToHost, unified};
  if (ends("HTOD") || ends("HTOA")) return {CopyKind::kHostToDevice, unified};
  if (ends("DTOH") || ends("ATOH")) return {CopyKind::kDeviceToHost, unified};
  if (ends("DTOD") || ends("DTOA") || ends("ATOD") || ends("ATOA"))
    return {CopyKind::kDeviceToDevice, unified};
  return {CopyKind::kUnknown, unified};
}

SyncKind sync_named(std::string_view name) {
  const auto has = [name](std::string_view what) { return name.find(what) != name.npos; };
  if (has("STREAM_WAIT")) return SyncKind::kStreamWaitsEvent;
  if (has("EVENT_SYNC")) return SyncKind::kEvent;
  if (has("STREAM_SYNC")) return SyncKind::kStream;
  if (has("CONTEXT_SYNC")) return SyncKind::kContext;
  return SyncKind::kUnknown;
}

bool profilers_named(std::string_view name) {
  const auto has = [name](std::string_view what) { return name.find(what) != name.npos; };
  return has("BUFFER_FLUSH") || has("INSTRUMENTATION") || has("CUPTI_RESOURCE") || has("BUFFER_REQUEST");
}

template <typename Value, typename Named>
void read(Database& database, Reading& reading, std::string_view table, Named named,
          Enumerations::ById<Value>& into) {
  RowReader rows{database, reading, table, {{"id"}, {"name"}}};
  bool any = false;
  while (rows.next()) {
    const auto id = rows.integer(0);
    if (!id || rows.bytes(1).empty()) continue;
    if (!std::exchange(any, true)) into.clear();  // the file's own numbers, and none of ours
    into.insert_or_assign(*id, named(rows.bytes(1)));
  }
}

template <typename Value>
Value at_or(const Enumerations::ById<Value>& values, std::int64_t id, Value otherwise) {
  const auto found = values.find(id);
  return found == values.end() ? otherwise : found->second;
}

}  // namespace

Enumerations::Enumerations(Database& database, Reading& reading)
    : copies{{1, {CopyKind::kHostToDevice}},        {2, {CopyKind::kDeviceToHost}},
             {3, {CopyKind::kHostToDevice}},        {4, {CopyKind::kDeviceToHost}},
             {5, {CopyKind::kDeviceToDevice}},      {6, {CopyKind::kDeviceToDevice}},
             {7, {CopyKind::kDeviceToDevice}},      {8, {CopyKind::kDeviceToDevice}},
             {9, {CopyKind::kHostToHost}},          {10, {CopyKind::kPeer}},
             {11, {CopyKind::kHostToDevice, true}}, {12, {CopyKind::kDeviceToHost, true}},
             {13, {CopyKind::kDeviceToDevice, true}}},
      pageable{{0, true}},
      syncs{{1, SyncKind::kEvent}, {2, SyncKind::kStreamWaitsEvent}, {3, SyncKind::kStream}, {4, SyncKind::kContext}},
      nvtx_kinds{{34, NvtxKind::kMark}, {59, NvtxKind::kRange}, {60, NvtxKind::kRange},
                 {65, NvtxKind::kMark}, {70, NvtxKind::kRange}, {71, NvtxKind::kRange}},
      profilers{{3, true}, {4, true}, {5, true}} {
  read(database, reading, "ENUM_CUDA_MEMCPY_OPER", copy_named, copies);
  read(database, reading, "ENUM_CUDA_MEM_KIND",
       [](std::string_view name) { return name.ends_with("PAGEABLE"); }, pageable);
  read(database, reading, "ENUM_CUPTI_SYNC_TYPE", sync_named, syncs);
  read(database, reading, "ENUM_NSYS_EVENT_TYPE",
       [](std::string_view name) {
         return is_one_of(kRanges, name) ? NvtxKind::kRange
                : is_one_of(kMarks, name) ? NvtxKind::kMark
                                          : NvtxKind::kOther;
       },
       nvtx_kinds);
  read(database, reading, "ENUM_CUPTI_OVERHEAD_TYPE", profilers_named, profilers);
}

CopyOperation Enumerations::copy(std::int64_t id) const { return at_or(copies, id, CopyOperation{}); }
bool Enumerations::is_pageable(std::int64_t memory_kind) const { return at_or(pageable, memory_kind, false); }
SyncKind Enumerations::sync(std::int64_t id) const { return at_or(syncs, id, SyncKind::kUnknown); }
NvtxKind Enumerations::nvtx(std::int64_t event_type) const { return at_or(nvtx_kinds, event_type, NvtxKind::kOther); }
bool Enumerations::is_profilers(std::int64_t overhead_type) const { return at_or(profilers, overhead_type, false); }

}  // namespace gpudiag::nsys_file
