// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "record/collective.hpp"
#include "record/record_codec.hpp"
#include "record/recording.hpp"
#include "record/recording_format.hpp"

namespace gpudiag {

using namespace recording_format;

namespace {

constexpr std::size_t kReadAtOnce = 256 * 1024;

// Names count upwards from 1; a number far beyond those seen is damage the checksum missed.
constexpr std::uint64_t kNamesLimit = 100'000'000;

}  // namespace

RecordingReader::RecordingReader(NameTable& names, Read read)
    : names_{names}, read_{std::move(read)} {}

std::optional<Error> RecordingReader::open() {
  fill(kPreamble.size());
  const std::string_view start = std::string_view{buffer_}.substr(0, kPreamble.size());
  if (start != kPreamble) {
    if (start.substr(0, kAnyVersion.size()) == kAnyVersion)
      return Error{"this recording has the format " + std::string{start.substr(0, start.find('\n'))} +
                   ", this version of gpudiag reads " + std::string{kRecordsSchema} +
                   ": use the version that wrote it, or a newer one"};
    return Error{"not a recording: it does not begin with " + std::string{kRecordsSchema}};
  }
  at_ = kPreamble.size();
  while ((ahead_ = next_frame()) && ahead_->type == frame_type::kAttribute)
    take_attributes(ahead_->payload);
  return std::nullopt;
}

bool RecordingReader::next(RecordSink& sink) {
  while (true) {
    const std::optional<Frame> frame = ahead_ ? std::exchange(ahead_, std::nullopt) : next_frame();
    if (!frame) return false;
    // A frame of any type tells how many records came before it, and so what is missing.
    if (frame->first > next_record_) {
      announce_lost(frame->first - next_record_, sink);
      next_record_ = frame->first;
    }
    switch (frame->type) {
      case frame_type::kAttribute: take_attributes(frame->payload); break;
      case frame_type::kNames: take_names(frame->payload); break;
      case frame_type::kEnd: finished_ = true; break;
      case frame_type::kRecords: take_records(*frame, sink); return true;
      default: break;  // a later version's
    }
  }
}

std::string_view RecordingReader::attribute(std::string_view key) const {
  for (const auto& [name, value] : attributes_)
    if (name == key) return value;
  return {};
}

// Makes `needed` bytes available from at_, if the file has them. Invalidates payload views.
bool RecordingReader::fill(std::size_t needed) {
  if (buffer_.size() - at_ >= needed) return true;
  buffer_.erase(0, at_);
  at_ = 0;
  while (buffer_.size() < needed && !at_end_) {
    const std::size_t before = buffer_.size();
    const std::size_t wanted = std::max(kReadAtOnce, needed - before);
    buffer_.resize(before + wanted);
    const std::size_t got = read_(buffer_.data() + before, wanted);
    buffer_.resize(before + got);
    bytes_read_ += got;
    at_end_ = got == 0;
  }
  return buffer_.size() >= needed;
}

std::optional<RecordingReader::Frame> RecordingReader::next_frame() {
  while (fill(kHeaderSize)) {
    const std::string_view header = std::string_view{buffer_}.substr(at_, kHeaderSize);
    const std::uint64_t size = little_endian(header.substr(5, 4));
    if (header.substr(0, 4) != kMarker || size > kPayloadLimit || !fill(kHeaderSize + size)) {
      if (!skip_damage()) return std::nullopt;
      continue;
    }
    const std::string_view whole = std::string_view{buffer_}.substr(at_, kHeaderSize + size);
    const std::string_view payload = whole.substr(kHeaderSize);
    if (checksum(whole.substr(4, 13), payload) != little_endian(whole.substr(17, 4))) {
      if (!skip_damage()) return std::nullopt;
      continue;
    }
    at_ += whole.size();
    return Frame{whole[4], little_endian(whole.substr(9, 8)), payload};
  }
  if (buffer_.size() > at_) {
    truncated_ = true;
    at_ = buffer_.size();
  }
  return std::nullopt;
}

// Goes on to the next marker after at_; false where the file holds none. A frame whose end is not
// there is a cut file, unless a good frame follows: then its length was damaged.
bool RecordingReader::skip_damage() {
  bool looking = true;
  std::size_t from = at_ + 1;
  while (looking) {
    const std::size_t found = buffer_.find(kMarker, from);
    if (found != std::string::npos) {
      ++broken_frames_;
      at_ = found;
      return true;
    }
    // A marker may straddle what has been read and what has not.
    at_ = std::max(at_, buffer_.size() - std::min(buffer_.size(), kMarker.size() - 1));
    looking = fill(buffer_.size() - at_ + 1);
    from = at_;
  }
  truncated_ = true;
  at_ = buffer_.size();
  return false;
}

void RecordingReader::take_attributes(std::string_view payload) {
  const auto key = take_text(payload);
  const auto value = take_text(payload);
  if (key && value) attributes_.emplace_back(*key, *value);
}

void RecordingReader::take_names(std::string_view payload) {
  auto number = take_varint(payload);
  if (!number || *number > kNamesLimit) return;
  while (const auto text = take_text(payload)) {
    if (ids_.size() <= *number) ids_.resize(*number + 1, kNoName);
    ids_[*number] = names_.intern(*text);
    ++*number;
  }
}

void RecordingReader::take_records(const Frame& frame, RecordSink& sink) {
  std::string_view payload = frame.payload;
  TimePoint previous_start;
  while (!payload.empty()) {
    auto record = take_record(payload, previous_start);
    if (!record) {
      ++broken_frames_;
      return;
    }
    const auto own = [this](NameId of_file) { return raw(of_file) < ids_.size() ? ids_[raw(of_file)] : kNoName; };
    record->name = own(record->name);
    if (const CollectiveTag tag = collective_tag_of(record->value2); record->is_operation() && tag.known())
      record->value2 = value2_of({own(tag.about), tag.sequence});
    last_start_ = record->start;
    ++next_record_;
    sink.add(*record);
  }
}

void RecordingReader::announce_lost(std::uint64_t count, RecordSink& sink) {
  Record lost;
  lost.kind = RecordKind::kLost;
  lost.start = last_start_;
  lost.end = last_start_;
  lost.value = count;
  sink.add(lost);
}

}  // namespace gpudiag
