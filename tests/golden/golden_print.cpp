// SPDX-License-Identifier: Apache-2.0
// Prints the golden text of traces: what tests/golden/update writes to tests/golden/expected.
#include <cstdio>
#include <string>

#include "golden_text.hpp"

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    std::fputs(gpudiag::golden::golden_text(arguments[i]).c_str(), stdout);
  }
  return 0;
}
