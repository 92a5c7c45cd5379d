// SPDX-License-Identifier: Apache-2.0
// Prints what schema_test.py checks against docs/schema: the tables of names as the code has them,
// and documents that hold every one of them. One JSON value a line: [kind, value].
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "attribution/findings.hpp"
#include "ledgers.hpp"
#include "report/ledger_json.hpp"
#include "report/reporter.hpp"

namespace {

using namespace gpudiag;

void print(std::string_view kind, std::string_view json) {
  fmt::print("[\"{}\",{}]\n", kind, json.substr(0, json.find_last_not_of('\n') + 1));
}

template <typename Names>
void add_names(JsonWriter& json, std::string_view table, const Names& names) {
  json.key(table).begin_array();
  for (std::string_view name : names) json.value(name);
  json.end_array();
}

void print_names() {
  std::string text;
  JsonWriter json{text};
  json.begin_object();
  add_names(json, "cause", kCauseNames);
  add_names(json, "sub_cause", kSubCauseNames);
  add_names(json, "finding_only_cause", kFindingOnlyNames);
  std::vector<std::string_view> verdicts(kVerdictOnlyNames.begin(), kVerdictOnlyNames.end());
  verdicts.push_back(kSeveralJobs);
  add_names(json, "verdict_only", verdicts);
  add_names(json, "culprit_kind", kCulpritKindNames);
  add_names(json, "late_pattern", kLatePatternNames);
  add_names(json, "collective_kind", kCollectiveKindNames);
  add_names(json, "invalid_reason", kInvalidReasonNames);
  add_names(json, "defect", kDefectNames);
  add_names(json, "phase", kPhaseNames);
  add_names(json, "opened_by", kMarkSourceNames);
  add_names(json, "grade", kGradeNames);
  add_names(json, "confidence", kConfidenceNames);
  json.end_object();
  print("names", text);
}

// One that holds the i-th of each enumeration, and names that are hard to write.
IterationLedger sample(std::size_t i) {
  IterationLedger made = test::ledger(i, 1000, {{static_cast<Cause>(i % kCauseCount), 500}});
  made.label = std::string("step \x01\"\\\n\xff\xed\xa0\x80 \xf0\x9f\x98\x80", 18);
  made.opened_by = static_cast<MarkSource>(i % kMarkSourceNames.size());
  made.phase = static_cast<Phase>(i % kPhaseNames.size());
  made.partial = i % 5 == 1;
  if (i % 4 == 3) made.invalid[i % made.invalid.size()] = i;
  if (i % 2 == 0) made.straggler_wait = DurationNs{3};
  Evidence seen = test::evidence(static_cast<Cause>(i % kCauseCount), static_cast<SubCause>(i), made.label, 7);
  made.evidence.assign(2, seen);
  return made;
}

SessionInfo session(std::uint32_t rank) {
  SessionInfo info;
  info.origin_unix_ns = 1736412345678901235 + rank;
  info.rank = rank;
  info.host = "node\xff";
  info.source = "live";
  info.devices = {{DeviceId{0}, "GPU \"0\""}};
  info.options = {{"GPUDIAG_LOG", "every"}};
  return info;
}

void print_session_lines() {
  print("session", session_start_json(session(1)));
  print("session", session_device_json(1, {DeviceId{1}, "GPU 1"}));
  print("session", session_note_json(1, {TimePoint{-5}, "callbacks_off", "callbacks off: 39"}));
  print("session", session_quality_json(1, TimePoint{5}, Quality{}));
  print("session", session_end_json(1, SessionEnd{}));
}

RankCollector collected(std::uint32_t rank) {
  RankCollector collector{session(rank)};
  for (std::size_t i = 0; i < kSubCauseNames.size(); ++i) collector.add(sample(i));
  collector.add_note({TimePoint{1}, "stood_aside", "torch.profiler ran"});
  collector.close();
  return collector;
}

// The report's lines are joined, as each printed value must stand in one.
void print_report(const Diagnosis& diagnosis, bool empty) {
  std::string text;
  const auto reporter = make_json_reporter([&](std::string_view piece) { text += piece; });
  reporter->begin();
  if (!empty)
    for (std::uint32_t rank : {0u, 1u}) reporter->rank(collected(rank));
  reporter->end(diagnosis);
  std::erase(text, '\n');
  print("report", text);
}

JobReport compared() {
  JobReport job;
  job.job = "TORCHELASTIC_RUN_ID=7;";
  job.world_size = 3;
  job.notes = {{"missing_ranks", "of 3 ranks 1 has no file"}};
  job.clocks.resize(2);
  job.clocks[0].host = "node0";
  job.indices = {5, 6};
  job.waits = {RankWait{DurationNs{3}, DurationNs{4}, DurationNs{}}, std::nullopt, std::nullopt, std::nullopt};
  job.ranks.resize(2);
  job.iterations = {{5, DurationNs{1000}, 1u, DurationNs{40}}, {6, DurationNs{900}, std::nullopt, DurationNs{}}};
  for (std::size_t i = 0; i < kCollectiveKindNames.size(); ++i) {
    CollectiveSum sum;
    sum.about.kind = static_cast<CollectiveKind>(i);
    sum.algbw = 1.5;
    job.collectives.push_back(sum);
  }
  for (std::size_t i = 0; i < kCulpritKindNames.size(); ++i) {
    Culprit culprit;
    culprit.kind = static_cast<CulpritKind>(i);
    culprit.pattern = static_cast<LatePattern>(i % kLatePatternNames.size());
    culprit.ranks = {1};
    culprit.iterations = {5};
    job.blame.culprits.push_back(culprit);
  }
  return job;
}

void print_compared_report() {
  std::string text;
  const auto reporter = make_json_reporter([&](std::string_view piece) { text += piece; });
  reporter->begin();
  const std::vector<JobReport> jobs{compared(), compared()};
  reporter->jobs(jobs);
  reporter->part("rank0.jsonl", {{}, "none", "so it is"});
  reporter->part("trace.json", {{}, "straggler", "so it is"});
  reporter->end({{}, std::string{kSeveralJobs}, "so it is"});
  std::erase(text, '\n');
  print("report", text);
}

Diagnosis every_finding() {
  Diagnosis diagnosis;
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(FindingCause::kHostTogether); ++i) {
    Finding finding;
    finding.cause = static_cast<FindingCause>(i);
    finding.sub_cause = static_cast<SubCause>(i);
    finding.share = 0.1;
    finding.advice = "Do something.";
    if (i % 2 == 0) finding.rank = i;
    finding.confidence = static_cast<Confidence>(i % kConfidenceNames.size());
    diagnosis.findings.push_back(finding);
  }
  diagnosis.verdict = "sync";
  diagnosis.reason = "it costs most";
  return diagnosis;
}

}  // namespace

int main() {
  print_names();
  for (std::size_t i = 0; i < kSubCauseNames.size(); ++i) print("iteration", iteration_json(sample(i), 3));
  print_session_lines();
  print_report(every_finding(), false);
  for (std::string_view verdict : kVerdictOnlyNames) print_report({{}, std::string{verdict}, "so it is"}, true);
  print_compared_report();
}
