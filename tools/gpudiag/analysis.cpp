// SPDX-License-Identifier: Apache-2.0
#include "analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#include "attribution/ranks/job_findings.hpp"
#include "attribution/ranks/summary_file.hpp"
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

/// Of a trace: the launcher's variables are not in it. `ranked`: it says which rank it is.
RankIdentity identity_of(const SessionInfo& info, const RecordedInfo& about, bool ranked) {
  RankIdentity who;
  who.rank = info.rank;
  who.world_size = ranked ? about.world_size.value_or(0) : 0;
  who.pid = info.pid;
  who.origin_unix_ns = info.origin_unix_ns;
  who.host = info.host;
  who.source = info.source;
  return who;
}

RankIdentity identity_of(const SessionInfo& info, const RecordingReader& reader) {
  RankIdentity who;
  who.rank = info.rank;
  who.world_size = number_or<std::uint32_t>(reader.attribute("world_size"), 0);
  who.restart = number_or<std::uint32_t>(reader.attribute("restart"), 0);
  who.job = reader.attribute("job");
  who.pid = info.pid;
  who.origin_unix_ns = info.origin_unix_ns;
  who.host = info.host;
  who.version = info.version;
  who.source = info.source;
  return who;
}

Result<RankSummary> summary_in(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in) return Error{fmt::format("cannot be opened: {}", std::strerror(errno))};
  std::ostringstream bytes;
  bytes << in.rdbuf();
  Result<RankSummary> summary = read_summary(bytes.str());
  if (summary) summary->who.source = path.filename().string();
  return summary;
}

/// As much of a ledger as a summary holds: no replay, no evidence.
IterationLedger ledger_of(const RankIteration& from, DeviceId device) {
  IterationLedger ledger;
  ledger.device = device;
  ledger.index = from.index;
  ledger.phase = from.phase;
  ledger.partial = from.partial;
  if (!from.valid) ledger.invalid[static_cast<std::size_t>(InvalidReason::kMissingRecords)] = 1;
  ledger.operations = from.use_count + (from.compute.ns > 0 ? 1u : 0u);  // at least
  ledger.start = from.start;
  ledger.wall = from.wall;
  ledger.compute = from.compute;
  ledger.communication = ledger.communication_total = from.communication;
  ledger.copy = ledger.copy_total = from.copy;
  ledger.idle = from.idle;
  ledger.idle_by_cause = from.idle_by_cause;
  return ledger;
}

/// What the session wrote beside its lines: `rank3.pid77.ranks` and, of further devices,
/// `rank3.pid77.dev1.ranks`.
std::vector<RankSummary> summaries_beside(const fs::path& lines, RankCollector& rank) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  const std::string stem = lines.stem().string() + ".";
  for (const auto& entry : fs::directory_iterator{lines.parent_path().empty() ? fs::path{"."} : lines.parent_path(), ignored})
    if (entry.path().extension() == ".ranks" && entry.path().filename().string().compare(0, stem.size(), stem) == 0)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<RankSummary> summaries;
  for (const fs::path& path : paths) {
    Result<RankSummary> summary = summary_in(path);
    if (!summary) {
      rank.add_note({{}, "summary_unreadable", fmt::format("{}: {}", path.filename().string(), summary.error().message)});
      continue;
    }
    summaries.push_back(std::move(*summary));
  }
  return summaries;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

void add_pattern_note(const PatternState& pattern, RankCollector& rank) {
  if (std::string text = describe(pattern); !text.empty()) rank.add_note({{}, "launch_pattern", std::move(text)});
}

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
    case InputKind::kSummary: error = add_summary(file.path); break;
    case InputKind::kRunLines: error = add_run_lines(file.path); break;
  }
  progress_.clear();
  return error;
}

Diagnosis Analysis::end() {
  const std::vector<JobReport> jobs = analyze_jobs(summaries_);
  share_waits(jobs);
  for (const Waiting& waiting : waiting_) {
    waiting.rank->close();
    for (Reporter* reporter : reporters_) reporter->rank(*waiting.rank);
  }
  if (!jobs.empty())
    for (Reporter* reporter : reporters_) reporter->jobs(jobs);
  const Diagnosis diagnosis = diagnose_groups(jobs);
  for (Reporter* reporter : reporters_) reporter->end(diagnosis);
  return diagnosis;
}

// Straggler waits and transfers belong into the ledgers of the iterations.
void Analysis::share_waits(const std::vector<JobReport>& jobs) {
  std::map<std::size_t, const std::optional<RankWait>*> of_summary;
  std::map<std::size_t, const JobReport*> job_of;
  for (const JobReport& job : jobs)
    for (std::size_t m = 0; m < job.members.size(); ++m) {
      of_summary[job.members[m]] = &job.waits[m * job.indices.size()];
      job_of[job.members[m]] = &job;
    }
  for (const Waiting& waiting : waiting_) {
    AddedWaits waits;
    for (const std::size_t s : waiting.summaries) {
      const auto found = of_summary.find(s);
      if (found == of_summary.end()) continue;
      const std::vector<std::uint64_t>& indices = job_of[s]->indices;
      for (std::size_t i = 0; i < indices.size(); ++i)
        if (const auto& wait = found->second[i])
          waits[{summaries_[s].who.device, indices[i]}] = {wait->straggler_wait, wait->transfer};
    }
    waiting.rank->set_waits(std::move(waits));
  }
}

// Ranks of a job; of what was compared with nobody, the files of one run; each other file by itself.
std::vector<std::vector<std::size_t>> Analysis::group_ranks(const std::vector<JobReport>& jobs) const {
  std::map<std::size_t, std::size_t> owner;
  for (std::size_t w = 0; w < waiting_.size(); ++w)
    for (const std::size_t s : waiting_[w].summaries) owner[s] = w;
  std::vector<std::vector<std::size_t>> groups;
  std::vector<bool> grouped(waiting_.size(), false);
  for (const JobReport& job : jobs) {
    std::set<std::size_t> members;
    for (const std::size_t s : job.members) members.insert(owner[s]);
    for (const std::size_t w : members) grouped[w] = true;
    groups.emplace_back(members.begin(), members.end());
  }
  std::map<std::string, std::size_t> runs;
  for (std::size_t w = 0; w < waiting_.size(); ++w)
    if (grouped[w] && !waiting_[w].together.empty())
      for (std::size_t g = 0; g < groups.size(); ++g)
        if (std::count(groups[g].begin(), groups[g].end(), w) > 0) runs.try_emplace(waiting_[w].together, g);
  for (std::size_t w = 0; w < waiting_.size(); ++w) {
    if (grouped[w]) continue;
    const std::string& run = waiting_[w].together;
    const auto [found, fresh] = run.empty() ? std::pair{runs.end(), true} : runs.try_emplace(run, groups.size());
    if (fresh) groups.push_back({w});
    else groups[found->second].push_back(w);
  }
  return groups;
}

Diagnosis Analysis::diagnose_groups(const std::vector<JobReport>& jobs) {
  const auto groups = group_ranks(jobs);
  Diagnosis all;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<RankBasis> bases;
    std::vector<std::string> whom;
    for (const std::size_t w : groups[g]) {
      bases.push_back(waiting_[w].rank->basis());
      whom.push_back(waiting_[w].rank->info().source);
    }
    Diagnosis diagnosis = diagnose(bases);
    if (g < jobs.size()) add_culprits(diagnosis, jobs[g]);
    if (groups.size() == 1) return diagnosis;
    const std::string name = whom.size() == 1 ? whom[0] : fmt::format("{} files, {} to {}", whom.size(), whom.front(), whom.back());
    for (Finding& finding : diagnosis.findings)
      if (!finding.rank && bases.size() == 1) finding.rank = bases.front().rank;
    for (Reporter* reporter : reporters_) reporter->part(name, diagnosis);
    all.findings.insert(all.findings.end(), diagnosis.findings.begin(), diagnosis.findings.end());
  }
  if (groups.empty()) return diagnose({});
  std::stable_sort(all.findings.begin(), all.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.ranked_by > b.ranked_by; });
  all.verdict = kSeveralJobs;
  all.reason = fmt::format("these are {} jobs that have nothing to do with each other, as far as their files tell; each has "
                           "its own verdict", groups.size());
  return all;
}

// Below a tenth of it ledgers go to a file each, of which a process may not have many.
std::size_t Analysis::memory_limit() const {
  constexpr std::size_t kInAll = std::size_t{1} << 29;
  return std::clamp<std::size_t>(kInAll / (waiting_.size() + 1), std::size_t{1} << 16, std::size_t{4} << 20);
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

void Analysis::hand_over(RankCollector&& rank, std::vector<RankSummary> summaries, bool claims, std::string together) {
  const std::uint32_t claimed = rank.info().rank;
  rank.info().rank = free_rank(claimed);
  if (claims && rank.info().rank != claimed)
    rank.add_note({{}, "rank_changed",
                   fmt::format("claims to be rank {}, which another file is already", claimed)});
  for (const auto& [id, device] : rank.devices()) iterations_ += device.iterations;
  Waiting waiting;
  waiting.rank = std::make_unique<RankCollector>(std::move(rank));
  waiting.together = std::move(together);
  for (RankSummary& summary : summaries) {
    waiting.summaries.push_back(summaries_.size());
    summaries_.push_back(std::move(summary));
  }
  waiting_.push_back(std::move(waiting));
}

ReadOptions Analysis::read_options() {
  ReadOptions options;
  options.on_progress = [this](std::uint64_t read, std::uint64_t total) { progress_.at(read, total); };
  return options;
}

std::optional<Error> Analysis::add_trace(const fs::path& path, const Result<RecordedTrace>& trace) {
  if (!trace) return trace.error();
  const RecordedInfo& about = trace->info();
  const auto working = std::count_if(trace->processes().begin(), trace->processes().end(),
                                     [](const RecordedProcess& process) { return process.operations > 0; });
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
    RankCollector rank{info, memory_limit()};
    RankIdentity who = identity_of(info, about, said.has_value());
    // Processes side by side in one file may be a job, of which no launcher tells: if their collectives match.
    if (who.world_size < 2 && working > 1) who.job = path.string();
    SummaryBuilder summary{std::move(who)};
    RankRecorder recorder{trace->names(), nullptr, [&](auto&&... iteration) { summary.add(iteration...); }};
    Engine engine{engine_options(), trace->names(), [&](const IterationLedger& ledger) {
                    rank.add(ledger);
                    recorder.iteration(ledger);
                  }};
    recorder.set_next(&engine);
    trace->deliver(process.id, recorder);
    engine.finish();
    add_pattern_note(engine.pattern(), rank);
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
    // Processes of one file were recorded together.
    const bool several = trace->processes().size() > 1;
    hand_over(std::move(rank), summary.take(), said.has_value() && (process.rank || place == 0),
              several ? path.string() : std::string{});
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
  RankCollector rank{session_of(reader, path), memory_limit()};
  SummaryBuilder summary{identity_of(rank.info(), reader)};
  RankRecorder recorder{names, nullptr, [&](auto&&... iteration) { summary.add(iteration...); }};
  EngineOptions options = engine_options();
  // The user's rules go before those of the run, which must be the same for the same ledgers.
  for (std::string& rule : split_rules(reader.attribute("option.GPUDIAG_RANGES")))
    options.range_rules.push_back(std::move(rule));
  if (options.iteration_pattern.empty())
    options.iteration_pattern = reader.attribute("option.GPUDIAG_ITERATION");
  const std::string pattern{reader.attribute("option.GPUDIAG_PATTERN")};
  options.launch_pattern = pattern != "off" && pattern != "0" && pattern != "false";
  Engine engine{options, names, [&](const IterationLedger& ledger) {
                  rank.add(ledger);
                  recorder.iteration(ledger);
                }};
  recorder.set_next(&engine);
  while (reader.next(recorder)) progress_.at(reader.bytes_read(), total);
  engine.finish();
  add_pattern_note(engine.pattern(), rank);
  add_devices(reader, rank);
  Quality quality = engine.quality();
  quality[Defect::kBrokenEvent] += reader.broken_frames();
  quality[Defect::kTruncated] += reader.truncated() ? 1 : 0;
  rank.set_quality(quality);
  rank.set_finished(reader.finished());
  hand_over(std::move(rank), summary.take(), true, path.parent_path().string());
  return std::nullopt;
}

// The rank's lines are missing: of each iteration there is what a summary keeps.
std::optional<Error> Analysis::add_summary(const fs::path& path) {
  Result<RankSummary> summary = summary_in(path);
  if (!summary) return summary.error();
  SessionInfo info;
  info.origin_unix_ns = summary->who.origin_unix_ns;
  info.rank = summary->who.rank;
  info.host = summary->who.host;
  info.pid = summary->who.pid;
  info.version = summary->who.version;
  info.source = summary->who.source;
  RankCollector rank{info, memory_limit()};
  rank.add_device({summary->who.device, summary->who.device_name});
  rank.add_note({{}, "summary_alone", "only the rank's summary is there, without its lines: shares and waits are known, costs are not"});
  for (const RankIteration& iteration : summary->iterations) rank.add(ledger_of(iteration, summary->who.device));
  rank.set_finished(summary->finished);
  std::vector<RankSummary> summaries;
  summaries.push_back(std::move(*summary));
  hand_over(std::move(rank), std::move(summaries), true, path.parent_path().string());
  return std::nullopt;
}

std::optional<Error> Analysis::add_run_lines(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in) return Error{fmt::format("cannot be opened: {}", std::strerror(errno))};
  std::error_code ignored;
  const std::uint64_t total = fs::file_size(path, ignored);
  SessionInfo info;
  info.rank = rank_in_name(path).value_or(0);
  RankCollector rank{info, memory_limit()};
  RunLines lines{rank};
  std::uint64_t read = 0;
  for (std::string line; std::getline(in, line);) {
    read += line.size() + 1;
    progress_.at(std::min(read, total), total);
    lines.add(line, in.eof());
  }
  lines.finish();
  std::vector<RankSummary> summaries = summaries_beside(path, rank);
  hand_over(std::move(rank), std::move(summaries), true, path.parent_path().string());
  return std::nullopt;
}

}  // namespace gpudiag::tool
