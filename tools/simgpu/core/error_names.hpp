// SPDX-License-Identifier: Apache-2.0
//
// Names and texts of errors. The runtime and the driver share most numbers.
#pragma once

namespace simgpu {

struct ErrorText {
  int code;
  const char* runtime_name;
  const char* driver_name;
  const char* description;
};

// Null for a code neither API knows.
const ErrorText* find_error_text(int code);

}  // namespace simgpu
