// SPDX-License-Identifier: Apache-2.0
// Jobs of many ranks, made up: data, tensor and pipeline parallel training in which one thing may be
// wrong, and what each rank's summary of it would be. Knows nothing of the analysis; it shares the type
// of a summary with it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "attribution/ranks/rank_summary.hpp"

namespace ranks_model {

enum class Layout : std::uint8_t { kData, kTensor, kPipeline };
inline constexpr std::array<std::string_view, 3> kLayoutNames{"data", "tensor", "pipeline"};

enum class Fault : std::uint8_t { kNone, kSlowCompute, kSlowData, kHostStall, kSlowLink, kPeriodic, kRotating };
inline constexpr std::array<std::string_view, 7> kFaultNames{"none",      "slow_compute", "slow_data", "host_stall",
                                                             "slow_link", "periodic",     "rotating"};

struct Options {
  std::uint32_t ranks = 2048;
  std::uint32_t ranks_a_host = 8;
  std::uint32_t iterations = 20;
  Layout layout = Layout::kPipeline;
  Fault fault = Fault::kNone;
  std::uint64_t seed = 1;
  double noise = 0.01;          ///< of each piece of work and each transfer, relative
  double clock_offset_s = 3;    ///< hosts' clocks are off by up to this
  double clock_drift_ppm = 20;
  bool sequence_numbers = true;
};

/// What was made wrong.
struct Truth {
  std::vector<std::uint32_t> guilty;  ///< ranks; empty where nothing is wrong
  double strength = 0;                ///< relative: of compute, of the step, of a transfer
  std::uint32_t period = 0;
};

struct Job {
  std::vector<gpudiag::RankSummary> ranks;
  Truth truth;
  double step_ms = 0;  ///< mean length of an iteration
};

Job make_job(const Options& options);

}  // namespace ranks_model
