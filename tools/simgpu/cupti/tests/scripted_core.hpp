// SPDX-License-Identifier: Apache-2.0
//
// A core whose every notice and every time a test chooses: stands in for the streams and the
// clock of the simulated GPU, so that the tests of CUPTI are literal.
//
//   test → ScriptedCore → the listener that libcupti registered → records → test
#pragma once

#include <cstdint>
#include <functional>

#include "../../core/listener.hpp"
#include "own_process.hpp"

namespace simgpu::testing {

/// The host time the scripted clock stands at, CLOCK_MONOTONIC ns. 0 lets it run for real.
void set_now(std::int64_t now_ns);

/// The sum of Wanted that libcupti has asked for.
std::uint32_t wanted();
/// Whether it wants notices of calls of this function.
bool wants_call(ApiDomain domain, std::uint32_t cbid);

/// One API call from enter to exit, with `inside` in between. Notices that libcupti does not want
/// are not sent, as the real core does. Returns the correlation id.
struct Call {
  ApiDomain domain = ApiDomain::runtime;
  std::uint32_t cbid = 0;
  const char* name = "";
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  int result = 0;
  const void* params = nullptr;
  const char* symbol = nullptr;
};
std::uint32_t run_call(const Call& call, const std::function<void(std::uint32_t)>& inside = {});

/// A kernel on device 0, context 1, stream 7.
OperationRecord kernel(const char* name, std::uint32_t correlation_id);
/// Tells that it is queued; sets its tag.
void queue(OperationRecord& operation);
/// Tells that it has ended.
void finish(OperationRecord operation, std::int64_t start_ns, std::int64_t end_ns);
/// Runs when a flush asks for what has ended: where tests finish operations "just in time".
void on_deliver(std::function<void()> hook);

void synchronised(const SyncRecord& sync);
void memory_changed(const MemoryRecord& memory);
void resource_changed(const ResourceRecord& resource);

}  // namespace simgpu::testing
