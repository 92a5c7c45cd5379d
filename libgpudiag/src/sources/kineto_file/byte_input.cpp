// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/byte_input.hpp"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

namespace gpudiag::kineto_file {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

class PlainInput final : public ByteInput {
 public:
  explicit PlainInput(File file) : file_{std::move(file)} {
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // reads are large: no second buffer
  }

  std::size_t read(std::span<char> into) override {
    const std::size_t count = std::fread(into.data(), 1, into.size(), file_.get());
    consumed_ += count;
    return count;
  }
  bool damaged() const override { return std::ferror(file_.get()) != 0; }
  std::uint64_t consumed() const override { return consumed_; }

 private:
  File file_;
  std::uint64_t consumed_ = 0;
};

/// Several members one after the other count as one file, as gzip itself has it.
class GzipInput final : public ByteInput {
 public:
  explicit GzipInput(File file) : file_{std::move(file)}, raw_(kRawBytes) { start_member(); }

  std::size_t read(std::span<char> into) override;
  bool damaged() const override { return damaged_; }
  std::uint64_t consumed() const override { return consumed_; }

 private:
  static constexpr std::size_t kRawBytes = 256u << 10;

  void start_member() {
    std::uint8_t* const next = state_.next_in;
    const std::uint32_t left = state_.avail_in;
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
    state_.next_in = next;
    state_.avail_in = left;
  }
  void refill();
  /// Whether another member begins behind the one that ended; padding does not count as one.
  bool next_member();

  File file_;
  std::vector<std::uint8_t> raw_;
  inflate_state state_{};
  std::uint64_t consumed_ = 0;
  bool damaged_ = false;
  bool ended_ = false;
};

void GzipInput::refill() {
  // A member's first two bytes may lie on both sides of a border: keep what is left.
  std::copy_n(state_.next_in, state_.avail_in, raw_.data());
  const std::size_t left = state_.avail_in;
  const std::size_t count = std::fread(raw_.data() + left, 1, raw_.size() - left, file_.get());
  consumed_ += count;
  state_.next_in = raw_.data();
  state_.avail_in = static_cast<std::uint32_t>(left + count);
}

bool GzipInput::next_member() {
  if (state_.avail_in < 2) refill();
  return state_.avail_in >= 2 && state_.next_in[0] == 0x1f && state_.next_in[1] == 0x8b;
}

std::size_t GzipInput::read(std::span<char> into) {
  std::size_t filled = 0;
  while (filled < into.size() && !ended_) {
    if (state_.avail_in == 0) refill();
    const bool starved = state_.avail_in == 0;
    const std::size_t space = std::min<std::size_t>(into.size() - filled, 1u << 30);
    state_.next_out = reinterpret_cast<std::uint8_t*>(into.data() + filled);
    state_.avail_out = static_cast<std::uint32_t>(space);
    const int status = isal_inflate(&state_);
    const std::size_t produced = space - state_.avail_out;
    filled += produced;
    if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT) {
      damaged_ = ended_ = true;
    } else if (state_.block_state == ISAL_BLOCK_FINISH) {
      ended_ = !next_member();
      if (!ended_) start_member();
    } else if (starved && produced == 0) {
      damaged_ = ended_ = true;
    }
  }
  return filled;
}

std::string reason() {
  return std::generic_category().message(errno);
}

}  // namespace

Result<std::unique_ptr<ByteInput>> open_input(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{fmt::format("{} is a directory, not a trace", path.string())};
  }
  File file{std::fopen(path.c_str(), "rb")};
  if (!file) return Error{fmt::format("cannot open {}: {}", path.string(), reason())};
  std::array<unsigned char, 2> magic{};
  const bool gzip = std::fread(magic.data(), 1, magic.size(), file.get()) == magic.size() &&
                    magic[0] == 0x1f && magic[1] == 0x8b;
  std::rewind(file.get());
  if (gzip) return std::unique_ptr<ByteInput>{std::make_unique<GzipInput>(std::move(file))};
  return std::unique_ptr<ByteInput>{std::make_unique<PlainInput>(std::move(file))};
}

}  // namespace gpudiag::kineto_file
