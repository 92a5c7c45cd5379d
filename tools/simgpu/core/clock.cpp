// SPDX-License-Identifier: Apache-2.0
#include "clock.hpp"

#include <ctime>

#include "faults.hpp"
#include "listener.hpp"

namespace simgpu {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// Timer slack is 50 µs by default, and waking takes some more.
constexpr std::int64_t kSpinNs = 80'000;

// The fault "clock": the device's clock is off by offset_ns and runs ppm parts in a million fast.
struct ClockFault {
  std::int64_t device;  // -1: every device
  std::int64_t offset_ns;
  double ppm;
  std::int64_t origin_ns;
};

const ClockFault* clock_fault() {
  static const ClockFault* const kFault = []() -> const ClockFault* {
    const Fault* fault = find_fault("clock");
    if (fault == nullptr) return nullptr;
    return new ClockFault{fault->number("device", -1), fault->number("offset_ns", 0),
                          fault->real("ppm", 0.0), now_ns()};
  }();
  return kFault;
}

}  // namespace

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

std::int64_t device_clock_ns(std::uint32_t device_id, std::int64_t host_ns) noexcept {
  if (!any_faults() || host_ns == 0) return host_ns;
  const ClockFault* fault = clock_fault();
  if (fault == nullptr || (fault->device >= 0 && fault->device != std::int64_t{device_id})) {
    return host_ns;
  }
  const double drift = static_cast<double>(host_ns - fault->origin_ns) * fault->ppm * 1e-6;
  return host_ns + fault->offset_ns + static_cast<std::int64_t>(drift);
}

void sleep_until_ns(std::int64_t deadline_ns) noexcept {
  const std::int64_t wake_ns = deadline_ns - kSpinNs;
  if (now_ns() < wake_ns) {
    timespec wake{};
    wake.tv_sec = static_cast<time_t>(wake_ns / kNsPerSecond);
    wake.tv_nsec = static_cast<long>(wake_ns % kNsPerSecond);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr) != 0) {
    }
  }
  spin_until_ns(deadline_ns);
}

void spin_until_ns(std::int64_t deadline_ns) noexcept {
  while (now_ns() < deadline_ns) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace simgpu
