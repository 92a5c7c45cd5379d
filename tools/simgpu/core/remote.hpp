// SPDX-License-Identifier: Apache-2.0
//
// Kernels that end when others say so: collectives, which wait for their peers in other processes.
//
// launch → operation → engine (knows the start) → **RemoteKernel** → library → remote_ended()
//
// What follows such a kernel stays unresolved until it has ended, as with host functions.
#pragma once

#include <cstdint>

namespace simgpu {

struct Operation;

// The functions of a library that has such kernels. Each is called with the engine's lock held: it
// must not call into the engine, and must be quick.
struct RemoteKernel {
  // A launch was queued, directly or as a node of a graph. `plan` is the first argument of the
  // launch, read as a pointer; it must stay valid while graphs hold it. The operation lives until
  // remote_ended() was called for it. `extra_ns`: what a rule or a fault asks for on top.
  void (*queued)(void* plan, Operation* operation, std::int64_t extra_ns);
  // Everything before it ends at `start_ns` at the latest, which may lie in the future.
  void (*started)(void* plan, Operation* operation, std::int64_t start_ns);
};

// The kernel has ended, or will at `end_ns` (host clock, not before its start). Takes the engine's
// lock. [any thread]
void remote_ended(Operation* operation, std::int64_t end_ns);

// Carries out what has ended by now, so that the memory of the device is as it is at this time.
// Takes the engine's lock. [any thread]
void settle_memory();

}  // namespace simgpu
