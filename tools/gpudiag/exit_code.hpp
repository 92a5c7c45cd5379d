// SPDX-License-Identifier: Apache-2.0
// Exit statuses of the gpudiag command; docs/cli.md explains them.
#pragma once

namespace gpudiag::tool {

inline constexpr int kSuccess = 0;
inline constexpr int kNothingRead = 1;  ///< no input could be read, or the output not be written
inline constexpr int kUsage = 2;
inline constexpr int kPartlyRead = 3;   ///< the report is there, but some input could not be read
// Of `run` before the job has a status of its own, as env(1) and timeout(1) have them.
inline constexpr int kRunFailed = 125;
inline constexpr int kCannotExecute = 126;
inline constexpr int kCommandNotFound = 127;

}  // namespace gpudiag::tool
