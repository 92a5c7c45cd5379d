// SPDX-License-Identifier: Apache-2.0
#include "analysis.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

#include "record/recording.hpp"
#include "run_lines.hpp"
#include "sources/kineto_file/kineto_trace.hpp"
#include "sources/nsys_file/nsys_trace.hpp"

namespace gpudiag::tool {

namespace fs = std::filesystem;

namespace {

template <typename Number>
Number number_or(std::string_view text, Number fallback) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : fallback;
}

void add_defects(Quality& to, const Quality& from) {
  for (std::size_t i = 0; i < to.defects.size(); ++i) to.defects[i] += from.defects[i];
}

std::vector<std::string> split_rules(std::string_view text) {
  std::vector<std::string> rules;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    if (end > 0) rules.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rules;
}

SessionInfo session_of(const RecordingReader& reader, const fs::path& path) {
  SessionInfo info;
  info.origin_unix_ns = number_or<std::int64_t>(reader.attribute("origin_unix_ns"), 0);
  info.rank = number_or<std::uint32_t>(reader.attribute("rank"), rank_in_name(path).value_or(0));
  info.host = reader.attribute("host");
  info.pid = number_or<std::uint64_t>(reader.attribute("pid"), 0);
  info.source = path.filename().string();
  info.version = reader.attribute("version");
  info.torch = reader.attribute("torch") == "true";
  constexpr std::string_view kOption = "option.";
  for (const auto& [key, value] : reader.attributes())
    if (key.substr(0, kOption.size()) == kOption)
      info.options.emplace_back(key.substr(kOption.size()), value);
  return info;
}

// Devices may be named later than the first record.
void add_devices(const RecordingReader& reader, RankCollector& rank) {
  constexpr std::string_view kDevice = "device.";
  for (const auto& [key, value] : reader.attributes())
    if (key.substr(0, kDevice.size()) == kDevice)
      rank.add_device({DeviceId{number_or<std::uint32_t>(key.substr(kDevice.size()), 0)}, value});
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Analysis::Analysis(std::vector<Reporter*> reporters, AnalysisOptions options, Progress& progress)
    : reporters_{std::move(reporters)}, options_{std::move(options)}, progress_{progress} {
  for (Reporter* reporter : reporters_) reporter->begin();
}

std::optional<Error> Analysis::add(const InputFile& file) {
  progress_.begin_file(file.path.filename().string());
  std::optional<Error> error;
  switch (file.kind) {
    case InputKind::kKinetoTrace: error = add_trace(file.path, read_kineto(file.path, read_options())); break;
    case InputKind::kNsysExport: error = add_trace(file.path, read_nsys(file.path, read_options())); break;
    case InputKind::kRecording: error = add_recording(file.path); break;
    case InputKind::kRunLines: error = add_run_lines(file.path); break;
  }
  progress_.clear();
  return error;
}

Diagnosis Analysis::end() {
  Diagnosis diagnosis = diagnose(bases_);
  for (Reporter* reporter : reporters_) reporter->end(diagnosis);
  return diagnosis;
}

EngineOptions Analysis::engine_options() const {
  EngineOptions options;
  options.range_rules = options_.range_rules;
  options.iteration_pattern = options_.iteration_pattern;
  return options;
}

// Two files may claim the same rank (two jobs in a folder); the later one gets the next free number.
std::uint32_t Analysis::free_rank(std::uint32_t wanted) {
  while (!ranks_seen_.insert(wanted).second) ++wanted;
  return wanted;
}

void Analysis::hand_over(RankCollector& rank, bool claims) {
  const std::uint32_t claimed = rank.info().rank;
  rank.info().rank = free_rank(claimed);
  if (claims && rank.info().rank != claimed)
    rank.add_note({{}, "rank_changed",
                   fmt::format("claims to be rank {}, which another file is already", claimed)});
  rank.close();
  for (const auto& [id, device] : rank.devices()) iterations_ += device.iterations;
  bases_.push_back(rank.basis());
  progress_.clear();  // a reporter may write to the same terminal
  for (Reporter* reporter : reporters_) reporter->rank(rank);
}

ReadOptions Analysis::read_options() {
  ReadOptions options;
  options.on_progress = [this](std::uint64_t read, std::uint64_t total) { progress_.at(read, total); };
  return options;
}

std::optional<Error> Analysis::add_trace(const fs::path& path, const Result<RecordedTrace>& trace) {
  if (!trace) return trace.error();
  const RecordedInfo& about = trace->info();
  std::uint32_t place = 0;
  for (const RecordedProcess& process : trace->processes()) {
    // Workers of a loader have host records alone; they are evidence for the main process, no rank.
    if (place > 0 && process.operations == 0) continue;
    const std::optional<std::uint32_t> said = process.rank ? process.rank : about.rank ? about.rank : rank_in_name(path);
    SessionInfo info;
    info.origin_unix_ns = number_or<std::int64_t>(about.origin_unix_ns, 0);
    info.rank = said.value_or(place);
    info.host = about.host;
    info.pid = process.pid > 0 ? static_cast<std::uint64_t>(process.pid) : 0;
    info.source = path.filename().string();
    info.torch = about.torch;
    RankCollector rank{info};
    Engine engine{engine_options(), trace->names(),
                  [&](const IterationLedger& ledger) { rank.add(ledger); }};
    trace->deliver(process.id, engine);
    engine.finish();
    for (const RecordedDevice& device : about.devices)
      if (rank.devices().count(device.id) > 0 && device.process.value_or(process.id) == process.id)
        rank.add_device({device.id, device.name});
    Quality quality = engine.quality();
    if (place == 0) {
      add_defects(quality, trace->quality());
      for (const std::string& text : about.unknown) rank.add_note({{}, "not_in_file", text});
    }
    rank.set_quality(quality);
    // One file of several processes may name a rank for all of them, which is the first one's.
    hand_over(rank, said.has_value() && (process.rank || place == 0));
    ++place;
  }
  return std::nullopt;
}

std::optional<Error> Analysis::add_recording(const fs::path& path) {
  const std::unique_ptr<std::FILE, CloseFile> file{std::fopen(path.c_str(), "rb")};
  if (!file) return Error{fmt::format("cannot be opened: {}", std::strerror(errno))};
  std::error_code ignored;
  const std::uint64_t total = fs::file_size(path, ignored);
  NameTable names;
  RecordingReader reader{names, [&](char* to, std::size_t size) {
                           return std::fread(to, 1, size, file.get());
                         }};
  if (auto error = reader.open()) return error;
  RankCollector rank{session_of(reader, path)};
  EngineOptions options = engine_options();
  // The user's rules go before those of the run, which must be the same for the same ledgers.
  for (std::string& rule : split_rules(reader.attribute("option.GPUDIAG_RANGES")))
    options.range_rules.push_back(std::move(rule));
  if (options.iteration_pattern.empty())
    options.iteration_pattern = reader.attribute("option.GPUDIAG_ITERATION");
  Engine engine{options, names, [&](const IterationLedger& ledger) { rank.add(ledger); }};
  while (reader.next(engine)) progress_.at(reader.bytes_read(), total);
  engine.finish();
  add_devices(reader, rank);
  Quality quality = engine.quality();
  quality[Defect::kBrokenEvent] += reader.broken_frames();
  quality[Defect::kTruncated] += reader.truncated() ? 1 : 0;
  rank.set_quality(quality);
  rank.set_finished(reader.finished());
  hand_over(rank);
  return std::nullopt;
}

std::optional<Error> Analysis::add_run_lines(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in) return Error{fmt::format("cannot be opened: {}", std::strerror(errno))};
  std::error_code ignored;
  const std::uint64_t total = fs::file_size(path, ignored);
  SessionInfo info;
  info.rank = rank_in_name(path).value_or(0);
  RankCollector rank{info};
  RunLines lines{rank};
  std::uint64_t read = 0;
  for (std::string line; std::getline(in, line);) {
    read += line.size() + 1;
    progress_.at(std::min(read, total), total);
    lines.add(line, in.eof());
  }
  lines.finish();
  hand_over(rank);
  return std::nullopt;
}

}  // namespace gpudiag::tool
