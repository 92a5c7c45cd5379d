// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_watch.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "attribution/ranks/job_report.hpp"
#include "fmt/format.h"

namespace gpudiag {
namespace {

// Fewer say nothing: the first ones of a job differ for many reasons. More are old news.
constexpr std::size_t kLeastIterations = 4;
constexpr std::size_t kMostIterations = 12;
constexpr DurationNs kWorthSaying = microseconds(100);
constexpr double kWorthSayingShare = 0.05;
// Once or twice in a dozen iterations a thread waits for a processor; only what costs much is said then.
constexpr std::size_t kOften = 3;
constexpr double kMuchShare = 0.2;

std::string length_text(DurationNs length) {
  const double ms = static_cast<double>(length.ns) * 1e-6;
  return ms < 10 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.0f} ms", ms);
}

std::string seconds_text(DurationNs length) { return fmt::format("{:.0f} s", static_cast<double>(length.ns) * 1e-9); }

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > 8) text += fmt::format(" and {} more", ranks.size() - 8);
  return text;
}

/// "data_loading (too_few_workers)", "compute".
std::string reason_text(const Culprit& culprit) {
  if (culprit.kind == CulpritKind::kCompute || culprit.kind == CulpritKind::kCopy ||
      (culprit.cause == Cause::kUnknown && culprit.kind != CulpritKind::kUnknown))
    return std::string{name_of(culprit.kind)};
  std::string text{name_of(culprit.cause)};
  if (culprit.sub_cause != SubCause::kNone) text += fmt::format(" ({})", name_of(culprit.sub_cause));
  return text;
}

/// What the rank's host is at: "DataLoader.__next__ for 12 s, iteration 41".
std::string host_text(const PeerView& peer) {
  const PeerState& state = peer.state;
  std::string text = state.doing.empty() ? "nothing that gpudiag knows of"
                                         : fmt::format("{} for {}", state.doing, seconds_text(state.doing_for));
  if (!state.summary.iterations.empty())
    text += fmt::format(", {} iterations ended", state.summary.iterations.back().index + 1);
  return text;
}

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What an iteration took a rank without its waits for others.
std::int64_t own_time(const RankIteration& iteration) {
  return (iteration.wall - iteration.communication -
          iteration.idle_by_cause[static_cast<std::size_t>(Cause::kCommunicationWait)]).ns;
}

/// Compute, copy, then the causes of idle time: median over the iterations.
std::array<std::int64_t, kCauseCount + 2> kinds_of(const RankSummary& summary) {
  std::array<std::int64_t, kCauseCount + 2> kinds{};
  std::vector<std::int64_t> values(summary.iterations.size());
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    std::transform(summary.iterations.begin(), summary.iterations.end(), values.begin(), [k](const RankIteration& i) {
      return k == 0 ? i.compute.ns : k == 1 ? i.copy.ns : i.idle_by_cause[k - 2].ns;
    });
    kinds[k] = median(values);
  }
  return kinds;
}

/// Of ranks that do the same: who needs longest by itself, in most iterations, while the others wait. For
/// jobs whose transfers run beside compute, where the times of arrival alone do not tell it.
std::optional<Culprit> longest_by_itself(const std::vector<RankSummary>& ranks) {
  std::vector<std::int64_t> owns;
  for (const RankSummary& rank : ranks) {
    std::vector<std::int64_t> values;
    for (const RankIteration& iteration : rank.iterations) values.push_back(own_time(iteration));
    owns.push_back(median(std::move(values)));
  }
  const auto worst = static_cast<std::size_t>(std::max_element(owns.begin(), owns.end()) - owns.begin());
  std::vector<std::int64_t> others = owns;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(worst));
  const RankSummary& own = ranks[worst];
  Culprit culprit;
  culprit.ranks.push_back(own.who.rank);
  culprit.late = {owns[worst] - median(others)};
  std::vector<std::int64_t> walls;
  for (const RankIteration& iteration : own.iterations) {
    walls.push_back(iteration.wall.ns);
    if (own_time(iteration) - median(others) > culprit.late.ns / 2) culprit.iterations.push_back(iteration.index);
  }
  culprit.iterations_seen = own.iterations.size();
  culprit.share = static_cast<double>(culprit.late.ns) / static_cast<double>(std::max<std::int64_t>(1, median(std::move(walls))));
  if (culprit.iterations.size() * 2 <= culprit.iterations_seen) return std::nullopt;
  auto more = kinds_of(own);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (r == worst) continue;
    const auto theirs = kinds_of(ranks[r]);
    for (std::size_t k = 0; k < more.size(); ++k) more[k] -= theirs[k] / static_cast<std::int64_t>(others.size());
  }
  more[2 + static_cast<std::size_t>(Cause::kCommunicationWait)] = 0;
  const auto most = static_cast<std::size_t>(std::max_element(more.begin(), more.end()) - more.begin());
  if (more[most] * 4 < culprit.late.ns) return culprit;  // its ledger does not say
  if (most < 2) {
    culprit.kind = most == 0 ? CulpritKind::kCompute : CulpritKind::kCopy;
    return culprit;
  }
  culprit.cause = static_cast<Cause>(most - 2);
  culprit.kind = culprit.cause == Cause::kDataLoading ? CulpritKind::kData : CulpritKind::kHost;
  culprit.sub_cause = own.iterations.back().sub_causes[most - 2];
  return culprit;
}

/// The iterations of `from` up to that index, at most kMostIterations.
RankSummary up_to(const RankSummary& from, std::uint64_t index) {
  RankSummary cut = from;
  std::erase_if(cut.iterations, [&](const RankIteration& iteration) {
    return iteration.index > index || iteration.index + kMostIterations <= index;
  });
  return cut;
}

}  // namespace

std::vector<PeerLine> PeerWatch::update(std::span<const PeerView> peers, TimePoint now) {
  std::vector<PeerLine> lines;
  find_absent(peers, lines);
  find_stuck(peers, lines);
  find_slowest(peers, now, lines);
  return lines;
}

void PeerWatch::find_absent(std::span<const PeerView> peers, std::vector<PeerLine>& lines) {
  for (const PeerView& peer : peers) {
    const RankIdentity& who = peer.state.summary.who;
    if (peer.state.left) continue;
    if (!peer.lives) {
      if (gone_.insert(who.rank).second)
        lines.push_back({"rank_gone", fmt::format("rank {} is gone without an end (process {} on {}); its host was at: {}",
                                                  who.rank, who.pid, who.host, host_text(peer)), false});
      continue;
    }
    if (peer.silent_for < kSilent) {
      silent_.erase(who.rank);
      continue;
    }
    if (silent_.insert(who.rank).second)
      lines.push_back({"rank_silent", fmt::format("rank {} has not been heard from for {} (process {} on {}: stopped, or "
                                                  "its host hangs)", who.rank, seconds_text(peer.silent_for), who.pid,
                                                  who.host), false});
  }
}

// Somebody waits, and whoever has asked for the fewest operations of the group has not come to the next.
// How many have ended, records do not tell: those before the one that hangs are held back with it.
void PeerWatch::find_stuck(std::span<const PeerView> peers, std::vector<PeerLine>& lines) {
  struct Place {
    const PeerView* peer;
    const GroupProgress* progress;
  };
  std::map<std::string, std::vector<Place>> groups;
  for (const PeerView& peer : peers)
    for (const GroupProgress& progress : peer.state.groups) groups[progress.group].push_back({&peer, &progress});
  for (const auto& [name, places] : groups) {
    const GroupProgress* waits = nullptr;
    std::uint64_t fewest = ~std::uint64_t{0};
    std::uint64_t most = 0;
    for (const Place& place : places) {
      fewest = std::min(fewest, place.progress->called);
      most = std::max(most, place.progress->called);
    }
    for (const Place& place : places) {
      // One that is stopped or gone says nothing of now.
      if (!place.peer->lives || place.peer->state.left || place.peer->silent_for >= kSilent) continue;
      if (place.progress->waiting > DurationNs{} && (waits == nullptr || place.progress->waiting > waits->waiting) &&
          (place.progress->called > fewest || fewest == most))
        waits = place.progress;
    }
    if (waits == nullptr) continue;
    const std::size_t size = std::max<std::size_t>(waits->group_size, places.size());
    const bool all_known = places.size() >= size;
    const bool all_came = fewest == most;
    // Where all have come, records that are held back look the same for a while.
    if (waits->waiting < (all_came ? DurationNs{3 * stuck_after_.ns} : stuck_after_) || (all_came && !all_known)) continue;
    const std::uint64_t number = all_came ? most - 1 : fewest;
    if (!stuck_.insert({name, number}).second) continue;
    std::string text = fmt::format("{} number {} of a group of {} has not ended for {}: ", name_of(kind_of(*waits, number)),
                                   number, size, seconds_text(waits->waiting));
    if (all_came) {
      text += "all its ranks have come to it, the transfer itself hangs";
    } else {
      std::vector<std::uint32_t> missing;
      std::string hosts;
      for (const Place& place : places) {
        if (place.progress->called > fewest) continue;
        const std::uint32_t rank = place.peer->state.summary.who.rank;
        missing.push_back(rank);
        if (missing.size() > 4) continue;
        hosts += fmt::format("; rank {}{}: {}", rank,
                             place.peer->state.left ? " (has ended)" : place.peer->lives ? "" : " (gone)",
                             host_text(*place.peer));
      }
      text += fmt::format("{} {} not come to it{}", ranks_text(missing), missing.size() == 1 ? "has" : "have", hosts);
      if (!all_known) text += fmt::format("; of {} nothing is known", size - places.size());
    }
    lines.push_back({"collective_stuck", std::move(text), false});
  }
}

void PeerWatch::find_slowest(std::span<const PeerView> peers, TimePoint now, std::vector<PeerLine>& lines) {
  // Up to the newest iteration that all have.
  std::uint64_t newest = ~std::uint64_t{0};
  std::size_t with_any = 0;
  for (const PeerView& peer : peers) {
    if (peer.state.summary.iterations.empty()) continue;
    newest = std::min(newest, peer.state.summary.iterations.back().index);
    ++with_any;
  }
  if (with_any < 2 || newest == compared_) return;
  compared_ = newest;
  std::vector<RankSummary> summaries;
  for (const PeerView& peer : peers) {
    RankSummary cut = up_to(peer.state.summary, newest);
    if (cut.iterations.size() >= kLeastIterations) summaries.push_back(std::move(cut));
  }
  if (summaries.size() < 2) return;
  std::sort(summaries.begin(), summaries.end(),
            [](const RankSummary& a, const RankSummary& b) { return a.who.rank < b.who.rank; });
  const JobReport report = analyze_job(summaries);
  std::optional<Culprit> found;
  if (!report.blame.culprits.empty()) found = report.blame.culprits.front();
  else if (report.roles <= 1) found = longest_by_itself(summaries);
  if (!found) return;
  const Culprit& worst = *found;
  if (worst.late < kWorthSaying || worst.share < kWorthSayingShare) return;
  if (worst.kind != CulpritKind::kNetwork && worst.iterations.size() < kOften && worst.share < kMuchShare) return;
  std::string who;
  std::string figure;
  if (worst.kind == CulpritKind::kNetwork) {
    who = fmt::format("slow transfers: {}{}", name_of(worst.collective.kind),
                      worst.whole_job || worst.ranks.empty() ? std::string{} : " of " + ranks_text(worst.ranks));
    figure = fmt::format("{}, +{}", who, length_text(worst.late));
  } else if (worst.ranks.empty()) {
    return;
  } else {
    const std::string ranks = worst.ranks.size() == 1 ? fmt::format("slowest rank {}", worst.ranks.front())
                                                      : "slowest " + ranks_text(worst.ranks);
    who = fmt::format("{}: {}", ranks, reason_text(worst));
    figure = fmt::format("{}: +{} {}", ranks, length_text(worst.late), reason_text(worst));
  }
  const bool again = who == slowest_;
  if (again && now - said_at_ < kSayAgain) return;
  slowest_ = who;
  said_at_ = now;
  figure += fmt::format(" (in {} of the last {} iterations, {:.1f} % of the job's time)", worst.iterations.size(),
                        worst.iterations_seen, worst.share * 100);
  lines.push_back({"slowest_rank", std::move(figure), again});
}

}  // namespace gpudiag
