// SPDX-License-Identifier: Apache-2.0
// A trace of a test, as a file; gone when the test is.
#pragma once

#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gpudiag::testing {

class TraceFile {
 public:
  explicit TraceFile(std::string_view content) {
    std::string name = (std::filesystem::temp_directory_path() / "gpudiag-trace-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0) throw std::runtime_error{"cannot make a file in the temporary folder"};
    close(descriptor);
    path_ = name;
    std::ofstream{path_, std::ios::binary}.write(content.data(),
                                                 static_cast<std::streamsize>(content.size()));
  }
  ~TraceFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// One gzip member.
inline std::string gzip(std::string_view text) {
  isal_zstream stream{};
  isal_deflate_stateless_init(&stream);
  std::string out(text.size() + 1024 + text.size() / 8, '\0');
  std::string in{text};
  stream.next_in = reinterpret_cast<std::uint8_t*>(in.data());
  stream.avail_in = static_cast<std::uint32_t>(in.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  stream.end_of_stream = 1;
  stream.gzip_flag = IGZIP_GZIP;
  if (isal_deflate_stateless(&stream) != COMP_OK) throw std::runtime_error{"cannot compress"};
  out.resize(stream.total_out);
  return out;
}

}  // namespace gpudiag::testing
