// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Finds the CUPTI of this process.
#pragma once

#include <string>

#include "record/result.hpp"
#include "sources/cupti/cupti_abi.hpp"

namespace gpudiag {

/// True where libcuda.so.1 is loaded or can be: without a driver CUPTI would only complain.
bool driver_present();
/// Whether it is in the process by now; loads nothing.
bool driver_loaded();

/// Looks, in this order, at the copy loaded already (torch brings its own, and two copies in one
/// process harm each other), `path` where not empty, the sonames on the library path, and next to
/// the CUDA runtime or in CUDA_HOME. The copy stays loaded for ever.
Result<CuptiTable> load_cupti(const std::string& path);

/// "39 (CUPTI_ERROR_…)"; the number alone where CUPTI has no word for it.
std::string describe(const CuptiTable& cupti, CUptiResult result);

}  // namespace gpudiag
