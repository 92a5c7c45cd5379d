// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "report/job_json.hpp"
#include "report/ledger_json.hpp"
#include "report/reporter.hpp"

namespace gpudiag {
namespace {

constexpr std::string_view kReportSchema = "gpudiag.report/1";

class JsonReporter final : public Reporter {
 public:
  explicit JsonReporter(Write write) : write_{std::move(write)} {}

  void rank(const RankCollector& rank) override {
    const SessionInfo& info = rank.info();
    if (!origin_) open(info.origin_unix_ns);
    // All times of a report have one origin, those of the first rank stay as they are.
    const DurationNs shift{info.origin_unix_ns - *origin_};
    json_.begin_object().field("rank", info.rank).field("host", info.host);
    json_.field("source", info.source).field("pid", info.pid);
    json_.field("clock_shift_ns", shift).field("finished", rank.finished()).key("quality");
    write_quality(json_, rank.quality());
    json_.key("notes").begin_array();
    for (const SessionNote& note : rank.notes())
      json_.begin_object().field("at_ns", note.at + shift).field("code", note.code)
          .field("text", note.text).end_object();
    json_.end_array().key("devices").begin_array();
    for (const auto& [id, device] : rank.devices()) write_device(rank, id, device, shift);
    json_.end_array().end_object();
    flush();
  }

  void jobs(std::span<const JobReport> jobs) override {
    JsonWriter json{jobs_};
    write_jobs(json, jobs);
  }

  void part(std::string_view whom, const Diagnosis& diagnosis) override {
    JsonWriter json{parts_};
    if (!parts_.empty()) parts_ += ',';
    json.begin_object().field("of", whom).field("verdict", diagnosis.verdict).field("reason", diagnosis.reason).end_object();
  }

  void end(const Diagnosis& diagnosis) override {
    if (!origin_) open(0);
    json_.end_array().key("findings").begin_array();
    for (const Finding& finding : diagnosis.findings) write_finding(finding);
    json_.end_array().key("collectives").raw_json(jobs_.empty() ? "{}" : jobs_);
    if (!parts_.empty()) json_.key("verdicts").begin_array().raw_json(parts_).end_array();
    json_.field("verdict", diagnosis.verdict).field("reason", diagnosis.reason).end_object();
    text_ += '\n';
    flush();
  }

 private:
  void open(std::int64_t origin) {
    origin_ = origin;
    json_.begin_object().field("schema", kReportSchema);
    // A string: the number exceeds 2^53, above which readers of JSON round.
    json_.field("origin_unix_ns", fmt::format("{}", origin)).key("ranks").begin_array();
  }

  void write_device(const RankCollector& rank, DeviceId id, const DeviceSummary& device,
                    DurationNs shift) {
    json_.begin_object().field("device", raw(id)).field("name", device.name);
    json_.key("iterations").begin_array();
    rank.iterations().for_each([&](const IterationLedger& ledger) {
      if (ledger.device != id) return;
      if (shift.ns == 0) {
        write_iteration(json_, ledger);
      } else {
        write_iteration(json_, shifted(ledger, shift));
      }
      text_ += '\n';
      flush();
    });
    json_.end_array().key("all");
    write_sum(json_, device.all);
    json_.key("steady");
    write_sum(json_, device.steady);
    json_.field("warm_up_iterations", device.warm_up);
    json_.field("invalid_iterations", device.invalid).end_object();
  }

  static IterationLedger shifted(IterationLedger ledger, DurationNs by) {
    ledger.start += by;
    for (Evidence& evidence : ledger.evidence) evidence.longest_at += by;
    return ledger;
  }

  void write_finding(const Finding& finding) {
    json_.begin_object().field("cause", name_of(finding.cause));
    json_.field("sub_cause", name_of(finding.sub_cause)).field("rank", finding.rank);
    json_.field("share", finding.share).field("share_margin", finding.share_margin);
    json_.field("upper_bound", finding.upper_bound).field("ranked_by", finding.ranked_by);
    json_.field("cost_ns_per_iteration", finding.cost_per_iteration);
    json_.field("speedup_if_fixed", finding.speedup_if_fixed).key("evidence").begin_array();
    for (const std::string& piece : finding.evidence) json_.value(piece);
    json_.end_array().field("advice", finding.advice);
    json_.field("together_with", finding.together_with);
    json_.field("every_iterations", finding.every).key("sub_costs").begin_array();
    for (const SubCost& cost : finding.sub_costs)
      json_.begin_object().field("sub_cause", name_of(cost.sub_cause)).field("share", cost.share)
          .field("cost_ns_per_iteration", cost.cost_per_iteration).end_object();
    json_.end_array();
    json_.field("confidence", kConfidenceNames[static_cast<std::size_t>(finding.confidence)]);
    json_.end_object();
  }

  void flush() {
    write_(text_);
    text_.clear();
  }

  Write write_;
  std::string jobs_;
  std::string parts_;
  std::string text_;
  JsonWriter json_{text_};
  std::optional<std::int64_t> origin_;
};

// Reads like the file of a live run, so that whatever reads the one reads the other.
class JsonLinesReporter final : public Reporter {
 public:
  explicit JsonLinesReporter(Write write) : write_{std::move(write)} {}

  void rank(const RankCollector& rank) override {
    SessionInfo info = rank.info();
    info.devices.clear();
    for (const auto& [id, device] : rank.devices()) info.devices.push_back({id, device.name});
    line(session_start_json(info));
    for (const SessionNote& note : rank.notes()) line(session_note_json(info.rank, note));
    SessionEnd end;
    end.quality = rank.quality();
    rank.iterations().for_each([&](const IterationLedger& ledger) {
      ++end.iterations;
      end.at = ledger.start + ledger.wall;
      end.own += ledger.own;
      line(iteration_json(ledger, info.rank));
    });
    line(session_end_json(info.rank, end));
  }

  void end(const Diagnosis&) override {}

 private:
  void line(std::string text) {
    text += '\n';
    write_(text);
  }

  Write write_;
};

}  // namespace

std::unique_ptr<Reporter> make_json_reporter(Write write) {
  return std::make_unique<JsonReporter>(std::move(write));
}

std::unique_ptr<Reporter> make_json_lines_reporter(Write write) {
  return std::make_unique<JsonLinesReporter>(std::move(write));
}

}  // namespace gpudiag
