// SPDX-License-Identifier: Apache-2.0
//
// How long things take in the simulation: SIMGPU_COSTS, a file of rules or the rules themselves,
// separated by newlines or semicolons. The first rule that matches wins; '#' begins a comment.
//
//   kernel REGEX [ns=N] [per_thread_ns=X] [per_block_ns=X] [argI=u64|i64|u32|i32|f32|f64]
//                [scale=X] [noise=X]
//   copy   h2d|d2h|d2d|p2p|h2h|pageable|memset [latency_ns=N] [bytes_per_s=X]
//   api    NAME host_ns=N
//
// A kernel's REGEX (ECMAScript, no spaces) is searched in its mangled and in its demangled name.
// Its duration is ns + threads × per_thread_ns + blocks × per_block_ns + (argument I, read as the
// type given, × scale). So `kernel busy arg0=u64` lets a program choose durations as it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "thread_state.hpp"

namespace simgpu {

enum class ArgumentType : std::uint8_t { none, u64, i64, u32, i32, f32, f64 };

struct KernelCost {
  // A small kernel takes about 2 µs. 0.02 ns a thread makes 10⁶ threads take 20 µs, the order of
  // an elementwise kernel over as many floats.
  double ns = 2000.0;
  double per_thread_ns = 0.02;
  double per_block_ns = 0.0;
  int argument = -1;
  ArgumentType argument_type = ArgumentType::none;
  double scale = 1.0;
  double noise = -1.0;  // relative; below 0: SIMGPU_NOISE
};

enum class CopyClass : std::uint8_t { h2d, d2h, d2d, p2p, h2h, pageable, memset, kCount };

struct CopyCost {
  double latency_ns;
  double bytes_per_s;
};

// The cost rule for a kernel, or `otherwise` where none matches. [any thread]
KernelCost kernel_cost(const std::string& mangled_name, const KernelCost& otherwise = {});

// Duration of one launch, noise included, in ns; at least 1. `arguments` may be null.
std::int64_t kernel_duration_ns(const KernelCost& cost, const Dimensions& grid,
                                const Dimensions& block, void** arguments);

std::int64_t copy_duration_ns(CopyClass copy_class, std::uint64_t bytes);

// Host time an API call shall burn before it does its work, 0 for most. Look it up once.
std::int64_t api_cost_ns(std::string_view function);

}  // namespace simgpu
