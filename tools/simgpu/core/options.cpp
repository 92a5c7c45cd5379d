// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace simgpu {
namespace {

std::string text(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

double real(const char* name, double fallback) {
  const std::string value = text(name, "");
  if (value.empty()) return fallback;
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (*end == '\0' && number >= 0.0) return number;
  std::fprintf(stderr, "simgpu: %s='%s' is no number that is at least 0; using %g\n", name,
               value.c_str(), fallback);
  return fallback;
}

// "80G", "512M", "64K" or plain bytes.
std::uint64_t bytes(const char* name, std::uint64_t fallback) {
  const std::string value = text(name, "");
  if (value.empty()) return fallback;
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const char* const units = "KMGT";
  std::uint64_t unit = 1;
  for (int i = 0; i < 4; ++i) {
    if (*end == units[i]) unit = std::uint64_t{1} << (10 * (i + 1));
  }
  if (number >= 0.0 && end != value.c_str() && (*end == '\0' || unit > 1)) {
    return static_cast<std::uint64_t>(number * static_cast<double>(unit));
  }
  std::fprintf(stderr, "simgpu: %s='%s' is no size such as 80G; using %llu bytes\n", name,
               value.c_str(), static_cast<unsigned long long>(fallback));
  return fallback;
}

std::string with_process_id(std::string path) {
  const std::size_t at = path.find("%p");
  if (at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  return path;
}

Options read_options() {
  Options o;
  o.devices = std::min(64U, static_cast<std::uint32_t>(real("SIMGPU_DEVICES", 1)));
  o.memory_bytes = bytes("SIMGPU_MEMORY", std::uint64_t{80} << 30);
  o.device_name = text("SIMGPU_NAME", "Simulated GPU");
  o.seed = static_cast<std::uint64_t>(real("SIMGPU_SEED", 1));
  o.noise = std::min(1.0, real("SIMGPU_NOISE", 0.01));
  o.launch_latency_ns = static_cast<std::int64_t>(real("SIMGPU_LAUNCH_LATENCY_NS", 2500));
  o.queue_depth = std::max(1U, static_cast<std::uint32_t>(real("SIMGPU_QUEUE_DEPTH", 1024)));
  o.max_moved_bytes = bytes("SIMGPU_MAX_MOVED_BYTES", std::uint64_t{256} << 10);
  o.costs = text("SIMGPU_COSTS", "");
  o.truth_path = with_process_id(text("SIMGPU_TRUTH", ""));
  // Tenths: 8.9 is no number that a double can hold.
  o.compute_tenths = static_cast<std::uint32_t>(real("SIMGPU_COMPUTE", 9.0) * 10.0 + 0.5);
  return o;
}

}  // namespace

const Options& options() {
  static const Options* const kOptions = new Options(read_options());
  return *kOptions;
}

}  // namespace simgpu
