// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "report/job_text.hpp"
#include "report/ledger_json.hpp"
#include "report/reporter.hpp"
#include "report/shares.hpp"
#include "report/text_line.hpp"

namespace gpudiag {
namespace {

constexpr std::int64_t kBarCells = 40;

std::string bar(std::int64_t tenths) {
  std::string text;
  for (std::int64_t i = 0; i < (tenths * kBarCells + 500) / 1000; ++i) text += "█";
  return text;
}

// Breaks at spaces; every line is indented, the first by `first`.
std::string wrapped(std::string_view text, std::size_t columns, std::string_view first,
                    std::string_view indent) {
  std::string out{first};
  std::size_t width = first.size();
  bool line_begins = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (!line_begins && width + 1 + end > columns) {
      out.append("\n").append(indent);
      width = indent.size();
      line_begins = true;
    }
    if (!line_begins) out += ' ';
    out += text.substr(0, end);
    width += end + (line_begins ? 0 : 1);
    line_begins = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out += '\n';
}

std::string say_counts(const DeviceSummary& device) {
  const std::string_view plural = device.iterations == 1 ? "" : "s";
  const std::uint64_t iterations = device.iterations - device.windows;
  std::string text = iterations == 0 && device.windows > 0
                         ? fmt::format("{} window{}, for nothing marks iterations and none were found", device.windows,
                                       plural)
                         : fmt::format("{} iteration{}", iterations, iterations == 1 ? "" : "s");
  if (iterations > 0 && device.windows > 0)
    text += fmt::format(" and {} window{} that {} none", device.windows, device.windows == 1 ? "" : "s",
                        device.windows == 1 ? "is" : "are");
  const auto count = [&](std::uint64_t n, std::string_view what) {
    if (n > 0) text += fmt::format(", {} {}", n, what);
  };
  count(device.partial, "partial");
  count(device.empty, "empty");
  count(device.invalid, "invalid");
  return text;
}

std::string say_basis(const DeviceSummary& device) {
  if (device.is_steady())
    return fmt::format("shares over the {} steady ones after {} of warm-up, median {}, longest {}",
                       device.steady.iterations, device.warm_up, format_time(device.median_wall),
                       format_time(device.longest_wall));
  return fmt::format("shares over all {} valid ones (fewer than three are steady)", device.judged.iterations);
}

// A margin that would be printed as 0.0 says nothing.
std::string say_share(const Finding& finding) {
  std::string text = fmt::format("{}{:.1f} %", finding.upper_bound ? "up to " : "", 100 * finding.share);
  if (finding.share_margin >= 0.0005) text += fmt::format(" (+- {:.1f})", 100 * finding.share_margin);
  return text + " of wall";
}

std::string say_unfinished(const RankCollector& rank) {
  std::uint64_t iterations = 0;
  for (const auto& [id, device] : rank.devices()) iterations += device.iterations;
  return iterations > 0 ? "the job ended without closing its session; what it had written is here"
                        : "the job ended without closing its session, before its first iteration had been written";
}

class TextReporter final : public Reporter {
 public:
  TextReporter(Write write, TextOptions options) : write_{std::move(write)}, options_{options} {}

  void rank(const RankCollector& rank) override {
    if (ranks_++ >= options_.ranks) return;
    const SessionInfo& info = rank.info();
    wrap(fmt::format("rank {}: {}{}{}", info.rank, info.source, info.host.empty() ? "" : " on ", info.host), "", "  ");
    print_quality(rank);
    for (const SessionNote& note : rank.notes()) {
      // That records come was news while the job ran.
      if (note.code != "recording") wrap(note.text, "  note: ", "        ");
    }
    if (options_.iterations) print_iterations(rank);
    for (const auto& [id, device] : rank.devices()) print_device(id, device);
  }

  void jobs(std::span<const JobReport> jobs) override {
    if (ranks_ > options_.ranks)
      print("\nand {} more ranks, each in --format json\n", ranks_ - options_.ranks);
    for (const JobReport& job : jobs) {
      std::string_view first = "\n";
      for (const std::string& paragraph : job_text(job)) {
        wrap(paragraph, first, "    ");
        first = "  ";
      }
    }
  }

  void part(std::string_view whom, const Diagnosis& diagnosis) override {
    in_parts_ = true;
    print("\n");
    wrap(whom, "", "  ");
    print_findings(diagnosis);
    wrap(fmt::format("{}: {}", diagnosis.verdict, diagnosis.reason), "verdict: ", "  ");
  }

  void end(const Diagnosis& diagnosis) override {
    if (!in_parts_) print_findings(diagnosis);
    print("\n");
    wrap(fmt::format("{}: {}", diagnosis.verdict, diagnosis.reason), "verdict: ", "  ");
  }

 private:
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write_(fmt::format(format, std::forward<Args>(args)...));
  }

  void wrap(std::string_view text, std::string_view first, std::string_view indent) {
    write_(wrapped(text, options_.columns, first, indent));
  }

  void print_findings(const Diagnosis& diagnosis) {
    int number = 0;
    if (!diagnosis.findings.empty()) print("\nfindings, by what removing the cause would save\n");
    for (const Finding& finding : diagnosis.findings) print_finding(++number, finding);
  }

  void print_quality(const RankCollector& rank) {
    const Quality& quality = rank.quality();
    std::string defects;
    for (std::size_t i = 0; i < quality.defects.size(); ++i)
      if (quality.defects[i] > 0)
        defects += fmt::format("{}{} {}", defects.empty() ? ": " : ", ", kDefectNames[i], quality.defects[i]);
    if (quality.records > 0)
      wrap(fmt::format("quality {} of {} records{}", name_of(quality.grade()), quality.records, defects), "  ", "    ");
    else
      wrap(fmt::format("{}{}", rank.finished() ? "no record was written: there is nothing to judge"
                                               : "quality not known: it had not been written yet",
                       defects),
           "  ", "    ");
    if (!rank.finished()) wrap(say_unfinished(rank), "  ", "    ");
  }

  void print_iterations(const RankCollector& rank) {
    const bool several = rank.devices().size() > 1;
    rank.iterations().for_each([&](const IterationLedger& ledger) {
      print("  {}\n", format_line({rank.info().rank, ledger.device, several}, ledger));
    });
  }

  void print_device(DeviceId id, const DeviceSummary& device) {
    wrap(fmt::format("device {}{}{}{}: {}", raw(id), device.name.empty() ? "" : " (", device.name,
                     device.name.empty() ? "" : ")", say_counts(device)),
         "  ", "    ");
    const LedgerSum& sum = device.basis();
    if (sum.wall.ns == 0) return;
    wrap(say_basis(device), "    ", "      ");
    print_shares(sum);
  }

  void print_shares(const LedgerSum& sum) {
    const Shares shares = shares_of(sum);
    print_share("compute", shares.compute, sum.compute, sum);
    print_share("communication", shares.communication, sum.communication, sum);
    print_share("copy", shares.copy, sum.copy, sum);
    print_share("idle", shares.idle, sum.idle, sum);
    for (std::size_t i = 0; i < kCauseCount; ++i) {
      const auto cause = static_cast<Cause>(i);
      if (sum.idle_of(cause).ns == 0) continue;
      const SubCause sub_cause = sum.sub_causes.dominant(cause);
      std::string name = fmt::format("  {}", name_of(cause));
      if (sub_cause != SubCause::kNone) name += fmt::format(" ({})", name_of(sub_cause));
      print_share(name, shares.idle_by_cause[i], sum.idle_of(cause), sum);
    }
  }

  void print_share(std::string_view name, std::int64_t tenths, DurationNs time, const LedgerSum& sum) {
    const auto iterations = static_cast<std::int64_t>(sum.iterations);
    print("    {:<36} {:>5} %  {:>11}  {}\n", name, format_tenths(tenths),
          format_time({time.ns / iterations}), bar(tenths));
  }

  void print_finding(int number, const Finding& finding) {
    std::string title{name_of(finding.cause)};
    if (finding.sub_cause != SubCause::kNone) title += fmt::format(" ({})", name_of(finding.sub_cause));
    if (!finding.together_with.empty()) title += fmt::format(" together with {}", finding.together_with);
    if (finding.rank) title += fmt::format(" on rank {}", *finding.rank);
    wrap(fmt::format("{}: {}, {} an iteration; {}{:.2f} times as fast without it (confidence {})", title,
                     say_share(finding), format_time(finding.cost_per_iteration),
                     finding.upper_bound ? "at most " : "", finding.speedup_if_fixed,
                     kConfidenceNames[static_cast<std::size_t>(finding.confidence)]),
         fmt::format("  {}. ", number), "     ");
    for (const std::string& piece : finding.evidence) wrap(piece, "     - ", "       ");
    wrap(finding.advice, "     > ", "       ");
  }

  Write write_;
  TextOptions options_;
  std::size_t ranks_ = 0;
  bool in_parts_ = false;
};

}  // namespace

std::unique_ptr<Reporter> make_text_reporter(Write write, TextOptions options) {
  return std::make_unique<TextReporter>(std::move(write), options);
}

}  // namespace gpudiag
