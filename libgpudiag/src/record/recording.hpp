// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// `gpudiag.records/1`: raw records in a file, so that a run can be analysed again later. A line that
// names the format, then frames, each with its length and checksum, written by appending alone: a
// job that is killed loses the frame it was writing, and a damaged frame costs itself alone.
// docs/recordings.md has the layout byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/names.hpp"
#include "record/result.hpp"
#include "record/sink.hpp"

namespace gpudiag {

inline constexpr std::string_view kRecordsSchema = "gpudiag.records/1";

/// Writes records in the order of arrival. Not thread-safe. Put it before the engine, so that both
/// see the same order and a recording gives the very ledgers of the run.
class RecordingWriter final : public RecordSink {
 public:
  /// Appends all bytes or reports false; is not called again after that.
  using Append = std::function<bool(std::string_view)>;

  /// `names` must outlive the writer and hold the NameId of every record.
  RecordingWriter(const NameTable& names, Append append);
  ~RecordingWriter() override;
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;

  /// Something about the run, at once: origin_unix_ns, rank, host, pid, source, version,
  /// `device.N` (its name), `option.GPUDIAG_…`. Those that analysis needs go before any record.
  void attribute(std::string_view key, std::string_view value);
  void add(const Record& record) override;
  /// Writes what waits as a frame; what has been flushed survives the process.
  void flush();
  /// The run ended in order. Flushes; nothing may follow.
  void finish();

  std::uint64_t records() const { return records_; }
  std::uint64_t bytes() const { return bytes_; }
  /// False once an append failed (disk full): nothing is written from then on.
  bool ok() const { return ok_; }

 private:
  void write_names();
  void write_frame(char type, std::string_view payload, std::uint64_t first);
  void append(std::string_view bytes);

  const NameTable& names_;
  Append append_;
  std::string records_frame_;
  std::string scratch_;
  TimePoint previous_start_;
  std::uint64_t records_ = 0;
  std::uint64_t first_in_frame_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t names_written_ = 1;  // id 0 is the empty text in every table
  bool ok_ = true;
};

/// Reads what a RecordingWriter wrote, a frame at a time, whatever state the file is in.
class RecordingReader {
 public:
  /// Fills up to `size` bytes and says how many; 0 at the end.
  using Read = std::function<std::size_t(char* to, std::size_t size)>;
  using Attribute = std::pair<std::string, std::string>;

  /// Names of the records are interned in `names`, which must outlive the reader.
  RecordingReader(NameTable& names, Read read);

  /// Reads the format line and the attributes before the first record. An error where this is no
  /// recording, or one of a version that this reader does not know.
  std::optional<Error> open();
  /// Feeds the records of the next good frame to `sink`; false at the end. Where frames were lost
  /// in between, a kLost record with their number of records goes first.
  bool next(RecordSink& sink);

  const std::vector<Attribute>& attributes() const { return attributes_; }
  /// Empty where there is none.
  std::string_view attribute(std::string_view key) const;
  /// Damaged stretches that were skipped.
  std::uint64_t broken_frames() const { return broken_frames_; }
  /// The file ends inside a frame, as a killed job leaves it.
  bool truncated() const { return truncated_; }
  /// Whether the run closed it in order; what a killed job leaves has no closing frame.
  bool finished() const { return finished_; }
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct Frame {
    char type = 0;
    std::uint64_t first = 0;
    std::string_view payload;
  };

  bool fill(std::size_t needed);
  std::optional<Frame> next_frame();
  bool skip_damage();
  void take_attributes(std::string_view payload);
  void take_names(std::string_view payload);
  void take_records(const Frame& frame, RecordSink& sink);
  void announce_lost(std::uint64_t count, RecordSink& sink);

  NameTable& names_;
  Read read_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::optional<Frame> ahead_;  // read by open(), its payload still in buffer_
  std::vector<Attribute> attributes_;
  std::vector<NameId> ids_{kNoName};
  TimePoint last_start_;
  std::uint64_t next_record_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t broken_frames_ = 0;
  bool truncated_ = false;
  bool finished_ = false;
  bool at_end_ = false;
};

}  // namespace gpudiag
