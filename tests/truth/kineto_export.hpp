// SPDX-License-Identifier: Apache-2.0
// Flow: jobs -> program -> machine -> tracer -> [kineto_export] -> other tools' analysis.
// A scenario as torch.profiler would have exported it, for tools that read such files.
#pragma once

#include <string>

#include "judge.hpp"

namespace gpudiag::truth {

/// Writes the job with `present` of its troubles to `path`. Ranges of gpudiag's own hooks are not in it,
/// since no other profiler records them. Throws std::runtime_error where it cannot be written.
void export_kineto(const Scenario& scenario, const Troubles& present, const std::string& path);

}  // namespace gpudiag::truth
