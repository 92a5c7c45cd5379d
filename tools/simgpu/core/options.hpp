// SPDX-License-Identifier: Apache-2.0
//
// What the environment asks of the simulated GPU. Read once, at the first question.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

struct Options {
  std::uint32_t devices;           // SIMGPU_DEVICES, 0 to 64; default 1
  std::uint64_t memory_bytes;      // SIMGPU_MEMORY, per device, "80G"; default 80 GiB
  std::string device_name;         // SIMGPU_NAME
  std::uint64_t seed;              // SIMGPU_SEED; default 1
  double noise;                    // SIMGPU_NOISE, relative; default 0.01
  std::int64_t launch_latency_ns;  // SIMGPU_LAUNCH_LATENCY_NS; default 2500
  std::uint32_t queue_depth;       // SIMGPU_QUEUE_DEPTH, launches a stream; default 1024
  std::uint64_t max_moved_bytes;   // SIMGPU_MAX_MOVED_BYTES, really moved by a copy; default 256 KiB
  std::string costs;               // SIMGPU_COSTS: rules, or a file of rules
  std::string truth_path;          // SIMGPU_TRUTH; %p stands for the process id
  std::uint32_t compute_tenths;    // SIMGPU_COMPUTE, compute capability times ten; default 90
};

const Options& options();

// A well mixed 64-bit hash of one number: the source of all reproducible noise here.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace simgpu
