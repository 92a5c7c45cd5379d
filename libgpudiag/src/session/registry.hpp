// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: one session a process.
// Several copies of this library may be loaded: injected, linked, imported by Python. They find each
// other by a C table that each exports and agree on one that owns the session; calls to the others
// are forwarded to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpudiag/gpudiag.h"

extern "C" {

/// What copies of different versions know of each other. Members are only ever added at the end;
/// `size` says how many there are. Never freed.
struct gpudiag_api_v1_table {
  std::size_t size;
  /// In the first loaded copy: the owner of the session, null for none. Accessed atomically.
  const gpudiag_api_v1_table* owner;
  /// From now on the public calls of this copy go to `owner`; null: to nobody.
  void (*adopt)(const gpudiag_api_v1_table* owner);

  gpudiag_status (*start)(const gpudiag_options* options);
  void (*stop)();
  int (*active)();
  void (*step)(std::uint64_t number);
  void (*range_push)(const char* name, gpudiag_cause cause);
  void (*range_pop)();
  void (*annotate)(const char* name, gpudiag_cause cause, std::int64_t start_ns, std::int64_t end_ns);
  int (*last)(gpudiag_iteration* iteration);
  void (*on_iteration)(gpudiag_iteration_callback callback, void* user);

  // Not in the first version: ask has_member() before a call.
  void (*mark)(gpudiag_mark_kind kind, gpudiag_phase phase, std::uint64_t number);
  std::size_t (*take_iterations)(gpudiag_iteration* iterations, std::size_t capacity, int timeout_ms);
  std::size_t (*report)(char* text, std::size_t capacity);
  void (*annotate_from)(gpudiag_range_source source, const char* name, std::int64_t start_ns, std::int64_t end_ns);
  void (*stand_aside)(const char* who);
  void (*resume)();
  /// How many calls of stand_aside() this copy has counted without their resume(); it forgets them.
  unsigned (*take_asides)();
};

/// The table of this copy.
GPUDIAG_API gpudiag_api_v1_table* gpudiag_api_v1(void);
}

namespace gpudiag {

/// Makes `mine` the owner unless another copy is; returns the owner. All copies learn of it.
const gpudiag_api_v1_table* claim_session(gpudiag_api_v1_table& mine);
/// The owner there is now; null for none.
const gpudiag_api_v1_table* find_session(gpudiag_api_v1_table& mine);
/// What other copies than `mine` have counted while there was no session; they forget it.
unsigned take_asides_of_others(gpudiag_api_v1_table& mine);
/// Gives the ownership back; nothing where `mine` is not the owner.
void release_session(gpudiag_api_v1_table& mine);

}  // namespace gpudiag
