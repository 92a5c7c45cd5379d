// SPDX-License-Identifier: Apache-2.0
//
// How gpudiag gets into a job without interposing: the driver loads what CUDA_INJECTION64_PATH names.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "checks.hpp"

namespace gpudiag::device {
namespace {

using Injection = Check;
/// What the simulated GPU cannot serve.
using InjectionHardware = Check;

/// Runs `program` with our little library injected; its output, and the lines that the library wrote.
struct Seen {
  std::string output;
  int injections = 0;
};
Seen run_injected(const std::string& program) {
  char path[] = "/tmp/gpudiag-injected-XXXXXX";
  const int file = mkstemp(path);
  if (file >= 0) close(file);
  unlink(path);
  const std::string command =
      fmt::format("CUDA_INJECTION64_PATH='{}' GPUDIAG_INJECTED='{}' '{}'", DEVICE_INJECTED, path, program);
  Seen seen;
  std::FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 256> line{};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) seen.output += line.data();
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << program;
  std::ifstream written{path};
  for (std::string each; std::getline(written, each);) ++seen.injections;
  unlink(path);
  return seen;
}

TEST_F(Injection, HappensOnceInTheFirstCallThatNeedsTheDriver) {
  row(38);
  const Seen seen = run_injected(DEVICE_TARGET_SHARED);
  EXPECT_EQ(seen.output, "before 0 after 1\n");
  EXPECT_EQ(seen.injections, 1);
}

TEST_F(InjectionHardware, ReachesProgramsWithAStaticRuntimeToo) {
  row(38);
  const Seen seen = run_injected(DEVICE_TARGET_STATIC);
  EXPECT_EQ(seen.output, "before 0 after 1\n");
  EXPECT_EQ(seen.injections, 1);
}

}  // namespace
}  // namespace gpudiag::device
