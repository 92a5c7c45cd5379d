// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// The comparison of ranks as the `collectives` of a report.
#pragma once

#include <span>

#include "attribution/ranks/job_report.hpp"
#include "report/json_writer.hpp"

namespace gpudiag {

/// An object: of the job with most operations, the others under `others`. Without any, an empty one.
void write_jobs(JsonWriter& json, std::span<const JobReport> jobs);

}  // namespace gpudiag
