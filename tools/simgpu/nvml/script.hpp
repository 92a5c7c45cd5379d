// SPDX-License-Identifier: Apache-2.0
//
// What the sensors of the simulated devices read, over time: SIMGPU_NVML names a file of lines
//
//   TIME DEVICE FIELD=VALUE [FIELD=VALUE …]
//
// TIME is ns, us, ms or s since the process first asked ("0", "250ms", "1.5s"), DEVICE a number
// or "*"; a value holds from its time on, "n/a" makes the field "not supported", and '#' begins a
// comment. "repeat TIME" starts the script over each time that long has passed. Fields:
// fields() lists them. Where the script says nothing, a field follows the simulated device.
//
//   file → Script → libnvidia-ml (queries), libcupti (ENVIRONMENT records)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simgpu::nvml {

/// What can be read. The unit of each is NVML's.
enum class Field : std::uint8_t {
  kUtilizationGpu,     // utilization.gpu, percent
  kUtilizationMemory,  // utilization.memory, percent
  kClockGraphics,      // clock.graphics, MHz
  kClockSm,            // clock.sm, MHz
  kClockMemory,        // clock.memory, MHz
  kClockVideo,         // clock.video, MHz
  kPower,              // power, mW
  kPowerLimit,         // power.limit, mW
  kEnergy,             // energy, mJ
  kTemperature,        // temperature, °C
  kFan,                // fan, percent
  kThrottleReasons,    // throttle, bit mask of nvmlClocksEventReason…
  kPcieTx,             // pcie.tx, KB/s
  kPcieRx,             // pcie.rx, KB/s
  kPcieGeneration,     // pcie.generation
  kPcieWidth,          // pcie.width, lanes
  kPcieReplays,        // pcie.replays
  kPerformanceState,   // pstate, 0 … 15
  kMemoryUsed,         // memory.used, bytes
  kEccErrors,          // ecc.uncorrected, count
  kMigMode,            // mig, 0 or 1
  kProcesses,          // processes: n/a hides the process list
  kName,               // name: n/a only
  kUuid,               // uuid: n/a only
  kMemory,             // memory: n/a hides all of memory info
  kCount
};

/// The word for a field in a script.
std::string_view field_name(Field field);

/// A reading of the script: nothing said, a number, or "not supported".
struct Reading {
  enum class State : std::uint8_t { kUnset, kNumber, kNotSupported };
  State state = State::kUnset;
  std::int64_t number = 0;
};

/// A parsed script; reading it is [any thread].
class Script {
 public:
  /// Parses a script. What is wrong with it comes back in `error`, with its line; the lines before
  /// hold.
  static Script parse(std::string_view text, std::string& error);

  /// The reading at `at_ns` after the start.
  Reading at(std::uint32_t device, Field field, std::int64_t at_ns) const;

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::int64_t from_ns;
    std::int64_t device;  // -1: all
    Field field;
    Reading reading;
  };
  bool parse_line(std::string_view line, std::string& error);

  std::vector<Entry> entries_;  // by time
  std::int64_t repeat_ns_ = 0;
};

/// The reading of the script of SIMGPU_NVML now. Unset without a script. A broken script is told
/// on stderr once.
Reading scripted(std::uint32_t device, Field field);

/// What a device does where no script speaks, in the field's unit.
std::int64_t unscripted(std::uint32_t device, Field field);

/// What a device of the simulation reads now: the script's word, else what the device does.
Reading read_sensor(std::uint32_t device, Field field);

}  // namespace simgpu::nvml
