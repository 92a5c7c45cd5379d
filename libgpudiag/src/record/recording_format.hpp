// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// The frame of `gpudiag.records/1`, shared by its writer and its reader. Little-endian:
//
//   4 bytes  marker     found again after damage
//   1        type       FrameType
//   4        size       of the payload
//   8        first      how many records were written before this frame
//   4        checksum   CRC-32 of type, size, first and payload
//   size     payload
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "record/crc32.hpp"

namespace gpudiag::recording_format {

inline constexpr std::string_view kPreamble = "gpudiag.records/1\n";
inline constexpr std::string_view kAnyVersion = "gpudiag.records/";
/// Begins with a byte that valid UTF-8 has nowhere, so no name can look like a frame.
inline constexpr std::string_view kMarker = "\xF7GDF";
inline constexpr std::size_t kHeaderSize = 4 + 1 + 4 + 8 + 4;
/// Frames are closed at about this size; a drain of 200 ms rarely fills one.
inline constexpr std::size_t kFrameTarget = 64 * 1024;
/// A larger size in a header is damage. A frame exceeds the target by one record or one name at most.
inline constexpr std::size_t kPayloadLimit = 16 * 1024 * 1024;

namespace frame_type {
inline constexpr char kAttribute = 'A';  ///< text key, text value
inline constexpr char kNames = 'N';      ///< number of the first, then texts
inline constexpr char kRecords = 'R';    ///< records by record_codec.hpp
inline constexpr char kEnd = 'E';
}  // namespace frame_type

inline void append_little_endian(std::string& out, std::uint64_t number, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>((number >> (8 * i)) & 0xFF);
}

inline std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i > 0; --i)
    number = (number << 8) | static_cast<unsigned char>(bytes[i - 1]);
  return number;
}

/// Of type, size and first of a header, then the payload.
inline std::uint32_t checksum(std::string_view fields, std::string_view payload) {
  return crc32(payload, crc32(fields));
}

}  // namespace gpudiag::recording_format
