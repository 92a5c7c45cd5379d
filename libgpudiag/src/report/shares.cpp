// SPDX-License-Identifier: Apache-2.0
#include "report/shares.hpp"

#include <algorithm>
#include <numeric>

namespace gpudiag {
namespace {

// Products of nanoseconds and units overflow 64 bits after a hundred days.
__extension__ typedef unsigned __int128 Wide;

struct Part {
  std::size_t at;
  std::uint64_t remainder;
};

}  // namespace

std::vector<std::int64_t> round_to_total(std::span<const std::int64_t> parts, std::int64_t total) {
  std::vector<std::int64_t> rounded(parts.size(), 0);
  std::uint64_t sum = 0;
  for (std::int64_t part : parts) sum += static_cast<std::uint64_t>(std::max<std::int64_t>(part, 0));
  if (sum == 0) return rounded;

  std::vector<Part> remainders;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Wide product = static_cast<Wide>(std::max<std::int64_t>(parts[i], 0)) *
                         static_cast<std::uint64_t>(total);
    rounded[i] = static_cast<std::int64_t>(product / sum);
    given += rounded[i];
    remainders.push_back({i, static_cast<std::uint64_t>(product % sum)});
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const Part& a, const Part& b) { return a.remainder > b.remainder; });
  for (std::size_t i = 0; given < total; ++i, ++given) ++rounded[remainders[i].at];
  return rounded;
}

Shares shares_of(const LedgerSum& sum) {
  std::vector<std::int64_t> parts{sum.compute.ns, sum.communication.ns, sum.copy.ns};
  for (DurationNs time : sum.idle_by_cause) parts.push_back(time.ns);
  const std::vector<std::int64_t> rounded = round_to_total(parts, 1000);

  Shares shares;
  shares.compute = rounded[0];
  shares.communication = rounded[1];
  shares.copy = rounded[2];
  std::copy(rounded.begin() + 3, rounded.end(), shares.idle_by_cause.begin());
  shares.idle = std::accumulate(rounded.begin() + 3, rounded.end(), std::int64_t{0});
  return shares;
}

}  // namespace gpudiag
