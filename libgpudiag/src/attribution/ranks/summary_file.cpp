// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/summary_file.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "record/record_codec.hpp"
#include "record/recording_format.hpp"

namespace gpudiag {
namespace {

using recording_format::append_little_endian;
using recording_format::checksum;
using recording_format::kHeaderSize;
using recording_format::kMarker;
using recording_format::kPayloadLimit;
using recording_format::little_endian;

constexpr std::string_view kPreamble = "gpudiag.ranks/1\n";
constexpr std::string_view kAnyVersion = "gpudiag.ranks/";

namespace frame_type {
constexpr char kIdentity = 'W';    // text key, text value, repeated
constexpr char kAbouts = 'C';      // number of the first, then texts
constexpr char kIterations = 'I';
constexpr char kEnd = 'E';
}  // namespace frame_type

constexpr std::uint64_t zigzag(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return (bits << 1) ^ (0 - (bits >> 63));
}
constexpr std::int64_t unzigzag(std::uint64_t bits) {
  return static_cast<std::int64_t>((bits >> 1) ^ (0 - (bits & 1)));
}

void put(std::string& out, std::int64_t value) { append_varint(out, zigzag(value)); }

/// Reads numbers until one is missing; then all are 0 and `good` is false.
struct Numbers {
  std::string_view& bytes;
  bool good = true;

  std::uint64_t count() {
    const auto taken = good ? take_varint(bytes) : std::nullopt;
    good = taken.has_value();
    return taken.value_or(0);
  }
  std::int64_t number() { return unzigzag(count()); }
};

void append_identity(std::string& out, const RankIdentity& who) {
  const auto field = [&](std::string_view key, std::string_view value) {
    append_text(out, key);
    append_text(out, value);
  };
  field("rank", std::to_string(who.rank));
  field("world_size", std::to_string(who.world_size));
  field("local_rank", std::to_string(who.local_rank));
  field("pid", std::to_string(who.pid));
  field("device", std::to_string(raw(who.device)));
  field("origin_unix_ns", std::to_string(who.origin_unix_ns));
  field("restart", std::to_string(who.restart));
  field("job", who.job);
  field("host", who.host);
  field("device_name", who.device_name);
  field("pci", who.pci);
  field("numa_node", std::to_string(who.numa_node));
  field("version", who.version);
  field("source", who.source);
}

template <typename Number>
Number number_or(std::string_view text, Number fallback) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : fallback;
}

void take_identity(std::string_view payload, RankIdentity& who) {
  while (!payload.empty()) {
    const auto key = take_text(payload);
    const auto value = take_text(payload);
    if (!key || !value) return;
    if (*key == "rank") who.rank = number_or(*value, who.rank);
    else if (*key == "world_size") who.world_size = number_or(*value, who.world_size);
    else if (*key == "local_rank") who.local_rank = number_or(*value, who.local_rank);
    else if (*key == "pid") who.pid = number_or(*value, who.pid);
    else if (*key == "device") who.device = DeviceId{number_or(*value, raw(who.device))};
    else if (*key == "origin_unix_ns") who.origin_unix_ns = number_or(*value, who.origin_unix_ns);
    else if (*key == "restart") who.restart = number_or(*value, who.restart);
    else if (*key == "job") who.job = *value;
    else if (*key == "host") who.host = *value;
    else if (*key == "device_name") who.device_name = *value;
    else if (*key == "pci") who.pci = *value;
    else if (*key == "numa_node") who.numa_node = number_or(*value, who.numa_node);
    else if (*key == "version") who.version = *value;
    else if (*key == "source") who.source = *value;
  }
}

// Bits of an iteration's first number, beside the phase.
constexpr std::uint64_t kPartial = 1u << 0;
constexpr std::uint64_t kValid = 1u << 1;
constexpr unsigned kPhaseShift = 2;
constexpr std::uint64_t kMostUses = 1u << 20;  // more is damage

void append_iteration(std::string& out, const RankIteration& i, std::int64_t& previous) {
  append_varint(out, i.index);
  append_varint(out, (i.partial ? kPartial : 0) | (i.valid ? kValid : 0) |
                         (static_cast<std::uint64_t>(i.phase) << kPhaseShift));
  put(out, i.start.ns - previous);
  previous = i.start.ns;
  for (const DurationNs time : {i.wall, i.compute, i.communication, i.copy, i.idle}) put(out, time.ns);
  std::uint64_t causes = 0;
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (i.idle_by_cause[c].ns != 0) causes |= std::uint64_t{1} << c;
  append_varint(out, causes);
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    if (i.idle_by_cause[c].ns == 0) continue;
    put(out, i.idle_by_cause[c].ns);
    append_varint(out, static_cast<std::uint64_t>(i.sub_causes[c]));
  }
}

RankIteration take_iteration(Numbers& numbers, std::int64_t& previous) {
  RankIteration i;
  i.index = numbers.count();
  const std::uint64_t flags = numbers.count();
  i.partial = (flags & kPartial) != 0;
  i.valid = (flags & kValid) != 0;
  i.phase = static_cast<Phase>((flags >> kPhaseShift) % kPhaseNames.size());
  i.start = {previous + numbers.number()};
  previous = i.start.ns;
  for (DurationNs* time : {&i.wall, &i.compute, &i.communication, &i.copy, &i.idle}) *time = {numbers.number()};
  const std::uint64_t causes = numbers.count();
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    if ((causes >> c & 1) == 0) continue;
    i.idle_by_cause[c] = {numbers.number()};
    const std::uint64_t sub_cause = numbers.count();
    if (sub_cause < kSubCauseNames.size()) i.sub_causes[c] = static_cast<SubCause>(sub_cause);
  }
  return i;
}

// Relative to the end of the one before; equal starts, hidden time and sequence numbers take a byte.
void append_use(std::string& out, const CollectiveUse& use, std::int64_t& previous) {
  append_varint(out, use.about);
  append_varint(out, std::uint64_t{use.sequence} + 1 == std::uint64_t{1} << 32 ? 0 : std::uint64_t{use.sequence} + 1);
  put(out, use.arrival.ns - previous);
  put(out, (use.start - use.arrival).ns);
  put(out, (use.end - use.start).ns);
  put(out, ((use.end - use.start) - use.exposed).ns);
  previous = use.end.ns;
}

CollectiveUse take_use(Numbers& numbers, std::int64_t& previous) {
  CollectiveUse use;
  use.about = static_cast<std::uint32_t>(numbers.count());
  use.sequence = static_cast<std::uint32_t>(numbers.count() - 1);
  use.arrival = {previous + numbers.number()};
  use.start = use.arrival + DurationNs{numbers.number()};
  use.end = use.start + DurationNs{numbers.number()};
  use.exposed = (use.end - use.start) - DurationNs{numbers.number()};
  previous = use.end.ns;
  return use;
}

class SummaryReader {
 public:
  explicit SummaryReader(std::string_view bytes) : bytes_{bytes} {}

  RankSummary read() {
    summary_.finished = false;
    while (next_frame()) {
    }
    if (ahead() < iterations_told_) summary_.broken = std::max<std::uint64_t>(summary_.broken, 1);
    return std::move(summary_);
  }

 private:
  std::uint64_t ahead() const { return summary_.iterations.size(); }

  bool next_frame() {
    if (bytes_.size() < kHeaderSize) {
      summary_.truncated = summary_.truncated || !bytes_.empty();
      return false;
    }
    const std::uint64_t size = little_endian(bytes_.substr(5, 4));
    if (bytes_.substr(0, 4) != kMarker || size > kPayloadLimit || bytes_.size() < kHeaderSize + size) return skip_damage();
    const std::string_view payload = bytes_.substr(kHeaderSize, size);
    if (checksum(bytes_.substr(4, 13), payload) != little_endian(bytes_.substr(17, 4))) return skip_damage();
    iterations_told_ = std::max(iterations_told_, little_endian(bytes_.substr(9, 8)));
    take(bytes_[4], payload);
    bytes_.remove_prefix(kHeaderSize + size);
    return true;
  }

  // To the next marker; where there is none the file was cut.
  bool skip_damage() {
    const std::size_t next = bytes_.find(kMarker, 1);
    if (next == std::string_view::npos) {
      summary_.truncated = true;
      return false;
    }
    ++summary_.broken;
    bytes_.remove_prefix(next);
    return true;
  }

  void take(char type, std::string_view payload) {
    switch (type) {
      case frame_type::kIdentity: return take_identity(payload, summary_.who);
      case frame_type::kAbouts: return take_abouts(payload);
      case frame_type::kIterations: return take_iterations(payload);
      case frame_type::kEnd: summary_.finished = true; return;
      default: return;  // a later version's
    }
  }

  void take_abouts(std::string_view payload) {
    const auto first = take_varint(payload);
    if (!first || *first > kMostUses) return;
    summary_.abouts.resize(std::max<std::size_t>(summary_.abouts.size(), *first));
    for (std::size_t at = *first; !payload.empty(); ++at) {
      const auto text = take_text(payload);
      if (!text) return;
      if (at >= summary_.abouts.size()) summary_.abouts.resize(at + 1);
      summary_.abouts[at] = collective_of_text(*text).value_or(CollectiveInfo{});
    }
  }

  void take_iterations(std::string_view payload) {
    std::int64_t previous = 0;
    while (!payload.empty()) {
      Numbers numbers{payload};
      RankIteration iteration = take_iteration(numbers, previous);
      iteration.left_out = static_cast<std::uint32_t>(numbers.count());
      const std::uint64_t uses = numbers.count();
      if (!numbers.good || uses > kMostUses) break;
      iteration.first_use = static_cast<std::uint32_t>(summary_.uses.size());
      for (std::uint64_t k = 0; k < uses && numbers.good; ++k) {
        const CollectiveUse use = take_use(numbers, previous);
        if (numbers.good) summary_.uses.push_back(use);
      }
      iteration.use_count = static_cast<std::uint32_t>(summary_.uses.size()) - iteration.first_use;
      if (!numbers.good) break;
      summary_.iterations.push_back(iteration);
    }
    if (!payload.empty()) ++summary_.broken;
  }

  std::string_view bytes_;
  RankSummary summary_;
  std::uint64_t iterations_told_ = 0;
};

}  // namespace

SummaryWriter::SummaryWriter(const RankIdentity& who, Append append) : append_{std::move(append)} {
  this->append(kPreamble);
  std::string identity;
  append_identity(identity, who);
  write_frame(frame_type::kIdentity, identity);
}

void SummaryWriter::add(const RankIteration& iteration, std::span<const CollectiveUse> uses,
                        std::span<const CollectiveInfo> abouts) {
  if (abouts_written_ < abouts.size()) {
    if (new_abouts_.empty()) append_varint(new_abouts_, abouts_written_);
    for (; abouts_written_ < abouts.size(); ++abouts_written_) append_text(new_abouts_, text_of(abouts[abouts_written_]));
  }
  const std::size_t stride = uses.size() / (kUsesKept + 1) + 1;
  append_iteration(waiting_, iteration, previous_);
  const std::size_t kept = (uses.size() + stride - 1) / stride;
  append_varint(waiting_, uses.size() - kept);
  append_varint(waiting_, kept);
  for (std::size_t k = 0; k < uses.size(); k += stride) append_use(waiting_, uses[k], previous_);
  ++iterations_;
  if (waiting_.size() >= recording_format::kFrameTarget) flush();
}

void SummaryWriter::flush() {
  if (!new_abouts_.empty()) write_frame(frame_type::kAbouts, new_abouts_);  // before the uses that name them
  new_abouts_.clear();
  if (waiting_.empty()) return;
  write_frame(frame_type::kIterations, waiting_);
  waiting_.clear();
  previous_ = 0;
  in_frames_ = iterations_;
}

void SummaryWriter::finish() {
  flush();
  write_frame(frame_type::kEnd, {});
}

void SummaryWriter::write_frame(char type, std::string_view payload) {
  std::string fields(1, type);
  append_little_endian(fields, payload.size(), 4);
  append_little_endian(fields, in_frames_, 8);  // iterations in the frames before
  std::string frame{kMarker};
  frame += fields;
  append_little_endian(frame, checksum(fields, payload), 4);
  frame += payload;
  append(frame);
}

void SummaryWriter::append(std::string_view bytes) {
  if (!ok_) return;
  ok_ = append_(bytes);
  if (ok_) bytes_ += bytes.size();
}

Result<RankSummary> read_summary(std::string_view bytes) {
  if (bytes.substr(0, kPreamble.size()) != kPreamble) {
    if (bytes.substr(0, kAnyVersion.size()) == kAnyVersion)
      return Error{"this summary has the format " + std::string{bytes.substr(0, bytes.find('\n'))} +
                   ", this version of gpudiag reads " + std::string{kRanksSchema}};
    return Error{"not a rank's summary: it does not begin with " + std::string{kRanksSchema}};
  }
  return SummaryReader{bytes.substr(kPreamble.size())}.read();
}

}  // namespace gpudiag
