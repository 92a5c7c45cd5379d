// SPDX-License-Identifier: Apache-2.0
#include "record/record_codec.hpp"
#include "record/recording.hpp"
#include "record/recording_format.hpp"

namespace gpudiag {

using namespace recording_format;

RecordingWriter::RecordingWriter(const NameTable& names, Append append)
    : names_{names}, append_{std::move(append)} {
  this->append(kPreamble);
}

RecordingWriter::~RecordingWriter() { flush(); }

void RecordingWriter::attribute(std::string_view key, std::string_view value) {
  flush();
  std::string payload;
  append_text(payload, key);
  append_text(payload, value);
  write_frame(frame_type::kAttribute, payload, records_);
}

void RecordingWriter::add(const Record& record) {
  append_record(records_frame_, record, previous_start_);
  ++records_;
  if (records_frame_.size() >= kFrameTarget) flush();
}

void RecordingWriter::flush() {
  if (records_frame_.empty()) return;
  write_names();  // before the records that use them
  write_frame(frame_type::kRecords, records_frame_, first_in_frame_);
  records_frame_.clear();
  previous_start_ = TimePoint{};
  first_in_frame_ = records_;
}

void RecordingWriter::finish() {
  flush();
  write_frame(frame_type::kEnd, {}, records_);
}

void RecordingWriter::write_names() {
  while (names_written_ < names_.size()) {
    std::string payload;
    append_varint(payload, names_written_);
    while (names_written_ < names_.size() && payload.size() < kFrameTarget) {
      append_text(payload, names_.text(NameId{static_cast<std::uint32_t>(names_written_)}));
      ++names_written_;
    }
    write_frame(frame_type::kNames, payload, first_in_frame_);
  }
}

void RecordingWriter::write_frame(char type, std::string_view payload, std::uint64_t first) {
  std::string fields(1, type);
  append_little_endian(fields, payload.size(), 4);
  append_little_endian(fields, first, 8);
  scratch_.assign(kMarker);
  scratch_ += fields;
  append_little_endian(scratch_, checksum(fields, payload), 4);
  scratch_ += payload;
  append(scratch_);
}

void RecordingWriter::append(std::string_view bytes) {
  if (!ok_) return;
  ok_ = append_(bytes);
  if (ok_) bytes_ += bytes.size();
}

}  // namespace gpudiag
