// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/job_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace gpudiag {
namespace {

constexpr std::size_t kNamed = 8;

class Notes {
 public:
  Notes(std::span<const RankSummary> ranks, const JobTable& table, const ClockFit& clocks)
      : ranks_{ranks}, table_{table}, clocks_{clocks} {}

  std::vector<JobNote> make() {
    missing();
    of_those("truncated", "end in the middle, as a killed job leaves them; what they hold is counted",
             [](const RankSummary& r) { return r.truncated; });
    of_those("damaged", "have damaged stretches, which were skipped", [](const RankSummary& r) { return r.broken > 0; });
    of_those("unfinished", "ended without closing their session", [](const RankSummary& r) { return !r.finished; });
    of_those("no_collectives", "have no collective: they can be compared with nobody",
             [](const RankSummary& r) { return r.uses.empty(); });
    of_those("thinned", "left out collectives for which an iteration's summary had no room", [](const RankSummary& r) {
      return std::any_of(r.iterations.begin(), r.iterations.end(), [](const RankIteration& i) { return i.left_out > 0; });
    });
    iteration_counts();
    versions();
    clocks();
    matches();
    groups_that_come_and_go();
    return std::move(notes_);
  }

 private:
  void add(std::string code, std::string text) { notes_.push_back({std::move(code), std::move(text)}); }

  template <typename Is>
  void of_those(const char* code, const char* text, Is is) {
    std::vector<std::uint32_t> those;
    for (const RankSummary& rank : ranks_)
      if (is(rank)) those.push_back(rank.who.rank);
    if (!those.empty())
      add(code, fmt::format("the summaries of rank{} {} {}", those.size() == 1 ? "" : "s", number_list(those), text));
  }

  void missing() {
    std::uint32_t world = 0;
    std::set<std::uint32_t> present;
    std::uint32_t highest = 0;
    for (const RankSummary& rank : ranks_) {
      world = std::max(world, rank.who.world_size);
      present.insert(rank.who.rank);
      highest = std::max(highest, rank.who.rank);
    }
    if (world == 0) return;
    if (highest >= world)
      add("rank_beyond_world", fmt::format("rank {} is there although the job has {} ranks", highest, world));
    std::vector<std::uint32_t> absent;
    for (std::uint32_t r = 0; r < world; ++r)
      if (present.count(r) == 0) absent.push_back(r);
    if (absent.empty()) return;
    add("missing_ranks", fmt::format("of {} ranks {} {} no file: rank{} {}; who is late may be among them", world,
                                     absent.size(), absent.size() == 1 ? "has" : "have",
                                     absent.size() == 1 ? "" : "s", number_list(absent)));
  }

  void iteration_counts() {
    std::map<std::size_t, std::size_t> counts;
    for (const RankSummary& rank : ranks_) ++counts[rank.iterations.size()];
    if (counts.size() < 2) return;
    const auto usual = std::max_element(counts.begin(), counts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<std::uint32_t> others;
    for (const RankSummary& rank : ranks_)
      if (rank.iterations.size() != usual->first) others.push_back(rank.who.rank);
    add("iterations_differ",
        fmt::format("most ranks have {} iterations, rank{} {} from {} to {}; those that all have are compared",
                    usual->first, others.size() == 1 ? "" : "s", number_list(others), counts.begin()->first,
                    counts.rbegin()->first));
  }

  void versions() {
    std::set<std::string> versions;
    for (const RankSummary& rank : ranks_)
      if (!rank.who.version.empty()) versions.insert(rank.who.version);
    if (versions.size() > 1)
      add("versions_differ", fmt::format("the ranks were recorded by gpudiag {}", fmt::join(versions, ", ")));
  }

  void clocks() {
    std::vector<std::string> jumped;
    std::vector<std::string> loose;
    for (const HostClock& clock : clocks_.clocks) {
      if (clock.jumped)
        jumped.push_back(fmt::format("{} by {:.3f} s at iteration {}", clock.host,
                                     static_cast<double>(clock.jump.ns) / 1e9, clock.jumped_at));
      if (!clock.tied) loose.push_back(clock.host);
    }
    const auto named = [](const std::vector<std::string>& all) {
      const std::size_t shown = std::min(all.size(), kNamed);
      std::string text = fmt::format("{}", fmt::join(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
      if (shown < all.size()) text += fmt::format(" and {} more", all.size() - shown);
      return text;
    };
    if (!jumped.empty())
      add("clock_jumped", fmt::format("a clock was set while the job ran (against the others: {}); its times are corrected "
                                      "iteration by iteration", named(jumped)));
    if (!loose.empty())
      add("clock_not_tied", fmt::format("no collective joins {} to the other hosts; their clocks are taken as they are",
                                        named(loose)));
  }

  void matches() {
    const MatchCounts& counts = table_.counts;
    if (counts.alone > 0)
      add("unmatched", fmt::format("{} of {} operations have no counterpart on another rank", counts.alone, counts.uses));
    if (counts.incomplete > 0)
      add("incomplete_groups", fmt::format("in {} of {} collectives fewer ranks were seen than their groups have",
                                           counts.incomplete, counts.collectives));
    if (counts.kinds_differ > 0)
      add("operations_differ", fmt::format("at {} places ranks of a group do different operations, or other sizes; these are "
                                           "matched among themselves", counts.kinds_differ));
  }

  // Of a communicator that is made, or given up, while the job runs.
  void groups_that_come_and_go() {
    if (table_.iteration_count() < 3) return;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> used(table_.groups.size(), {kNowhere, 0});
    for (const Match& match : table_.matches) {
      auto& [first, last] = used[match.group];
      first = first == kNowhere ? match.iteration : std::min(first, match.iteration);
      last = std::max(last, match.iteration);
    }
    std::vector<std::string> come_and_go;
    const auto end = static_cast<std::uint32_t>(table_.iteration_count() - 1);
    for (std::size_t g = 0; g < used.size(); ++g) {
      const auto [first, last] = used[g];
      // The first and the last iteration may be cut.
      if (first == kNowhere || (first <= 1 && last + 1 >= end)) continue;
      come_and_go.push_back(fmt::format("{} in iterations {} to {}", table_.groups[g], table_.indices[first], table_.indices[last]));
    }
    if (come_and_go.empty()) return;
    const std::size_t shown = std::min<std::size_t>(come_and_go.size(), 3);
    add("groups_come_and_go",
        fmt::format("{} of {} groups were not used all the time: {}{}", come_and_go.size(), table_.groups.size(),
                    fmt::join(come_and_go.begin(), come_and_go.begin() + static_cast<std::ptrdiff_t>(shown), "; "),
                    shown < come_and_go.size() ? "; …" : ""));
  }

  std::span<const RankSummary> ranks_;
  const JobTable& table_;
  const ClockFit& clocks_;
  std::vector<JobNote> notes_;
};

}  // namespace

std::vector<JobNote> notes_on(std::span<const RankSummary> ranks, const JobTable& table, const ClockFit& clocks) {
  return Notes{ranks, table, clocks}.make();
}

JobNote left_over(const RankSummary& summary, bool again) {
  const std::string who = fmt::format("rank {} of {} ({})", summary.who.rank, summary.who.world_size, summary.who.source);
  if (again) return {"duplicate_rank", who + " is there twice; this file is reported by itself and not compared"};
  return {"alone", who + " belongs to no other rank here: another job, world size or restart; it is reported by itself"};
}

void note_generations(std::vector<JobReport>& reports) {
  std::string text;
  for (const JobReport& report : reports)
    text += fmt::format("{}{}{} ranks of {}, {} iterations", text.empty() ? "" : "; ",
                        report.restart > 0 ? fmt::format("restart {}: ", report.restart) : "", report.members.size(),
                        report.world_size, report.indices.size());
  reports.front().notes.push_back(
      {"several_jobs", fmt::format("{} jobs, or restarts of one, were told apart by name, world size and restart, and compared "
                                   "each by itself: {}", reports.size(), text)});
}

std::string number_list(std::vector<std::uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> parts;
  std::size_t listed = 0;
  for (std::size_t from = 0; from < numbers.size() && parts.size() < kNamed;) {
    std::size_t to = from;
    while (to + 1 < numbers.size() && numbers[to + 1] == numbers[to] + 1) ++to;
    if (to > from + 1) {
      parts.push_back(fmt::format("{}-{}", numbers[from], numbers[to]));
    } else {
      to = from;
      parts.push_back(fmt::format("{}", numbers[from]));
    }
    listed += to - from + 1;
    from = to + 1;
  }
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (listed < numbers.size()) text += fmt::format(" and {} more", numbers.size() - listed);
  return text;
}

}  // namespace gpudiag
