// SPDX-License-Identifier: Apache-2.0
//
// Uses every part of the C++ API on a machine that may have no GPU: everything must link and run,
// and the clock must be the one the header promises.
#include <gpudiag/gpudiag.hpp>

#include <chrono>
#include <cstdio>

int main() {
  if (gpudiag_version() != GPUDIAG_API_VERSION) {
    std::fputs("the library's version is not the header's\n", stderr);
    return 1;
  }
  gpudiag::Options options;
  options.log = "off";
  options.rank = 0;
  const gpudiag::Session session(options);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const gpudiag::Range range("next batch", gpudiag::Cause::kDataLoading);
    gpudiag::annotate("decode", gpudiag::Cause::kNone, gpudiag::now(), gpudiag::now());
    gpudiag::step(i);
  }
  gpudiag::step();
  if (const auto last = gpudiag::last()) {
    std::fprintf(stderr, "no GPU was used, and yet there is iteration %llu\n",
                 static_cast<unsigned long long>(last->index));
    return 1;
  }
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  const auto now = gpudiag::now();
  const auto after = std::chrono::steady_clock::now().time_since_epoch();
  if (now < before || now > after) {
    std::fputs("gpudiag::now() is not the steady clock\n", stderr);
    return 1;
  }
  return 0;
}
