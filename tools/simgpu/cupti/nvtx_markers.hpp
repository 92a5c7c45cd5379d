// SPDX-License-Identifier: Apache-2.0
//
// NVTX as CUPTI's records: MARKER and MARKER_DATA for marks and ranges, NAME for named resources.
//
//   nvtx_injection.cpp (calls of the program) → records
#pragma once

#include <cupti.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <string>

namespace simgpu::cupti {

/// What an nvtxDomainHandle_t points at. Null is the default domain. Never freed: markers name it.
struct NvtxDomain {
  const char* name;
  std::uint32_t id;
};

/// What an nvtxStringHandle_t points at. Never freed.
struct NvtxString {
  const char* text;
};

/// A mark or the start of a range as the program describes it.
struct Marker {
  const NvtxDomain* domain = nullptr;
  const char* name = nullptr;  // interned
  const nvtxEventAttributes_t* attributes = nullptr;
};

/// A copy of `text` that lasts as long as the process; equal texts share one. Null stays null.
const char* intern(const char* text);
const char* intern(const wchar_t* text);

/// Reads a description; understands ASCII, wide and registered messages.
Marker describe(const NvtxDomain* domain, const nvtxEventAttributes_t* attributes);

/// A marker id; ids are never 0 and unique in the process.
std::uint32_t next_marker_id();

void record_mark(const Marker& marker);
void record_range_start(const Marker& marker, std::uint32_t id);
void record_range_end(const NvtxDomain* domain, std::uint32_t id);

/// Pushes a range of the thread; returns its level, 0 for the outermost of the domain.
int push_range(const Marker& marker);
/// Ends it; returns its level, -1 where none is open.
int pop_range(const NvtxDomain* domain);

/// A NAME record.
void record_name(CUpti_ActivityObjectKind kind, CUpti_ActivityObjectKindId id, const char* name);

}  // namespace simgpu::cupti
