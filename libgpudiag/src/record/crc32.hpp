// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// The checksum of a recording's frames.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gpudiag {

namespace crc32_detail {
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
    table[byte] = crc;
  }
  return table;
}
inline constexpr auto kTable = make_table();
}  // namespace crc32_detail

/// CRC-32 of IEEE 802.3, as zlib and gzip compute it; `before` continues the checksum of what came
/// first. Our own dozen lines, since nothing third-party may be linked into a job; a byte a step is
/// ample for the megabytes a second of a recording.
constexpr std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0) {
  std::uint32_t crc = ~before;
  for (char c : bytes)
    crc = (crc >> 8) ^ crc32_detail::kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFu];
  return ~crc;
}

}  // namespace gpudiag
