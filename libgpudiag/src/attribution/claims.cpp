// SPDX-License-Identifier: Apache-2.0
#include "attribution/claims.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace gpudiag {
namespace {

// Causes that claim by replay. Launch overhead takes what nobody claims, so it claims nothing.
constexpr bool claims_gaps(std::size_t cause) {
  const auto c = static_cast<Cause>(cause);
  return c != Cause::kLaunchOverhead && c != Cause::kDependency && c != Cause::kUnknown;
}

// The worlds that divide() asks for: those causes, and the one that says what remains.
constexpr auto kClaimedWorlds = [] {
  std::array<std::uint8_t, kWorldCount> worlds{};
  std::size_t count = 0;
  for (std::size_t w = 0; w < kWorldCount; ++w)
    if (w < kCauseCount ? claims_gaps(w) : w == kAllHostWorld) worlds[count++] = static_cast<std::uint8_t>(w);
  return std::pair{worlds, count};
}();

struct Account {
  const Gap& gap;
  CauseTimes charged{};
  CauseTimes& total;
  EvidenceTable& evidence;
  DurationNs rest;

  void charge(const EvidenceKey& key, DurationNs amount) {
    amount = std::min(amount, rest);
    if (amount <= DurationNs{}) return;
    charged[static_cast<std::size_t>(key.cause)] += amount;
    total[static_cast<std::size_t>(key.cause)] += amount;
    evidence.add_charge(key, amount);
    rest -= amount;
  }
};

/// What the host did in the part of a gap before the launch that ended it.
struct Doings {
  const HostLine& line;
  TimePoint start;
  TimePoint until;
  const Piece* late = nullptr;  ///< the last late batch that arrived in this time
  CauseTimes labelled{};        ///< length of the labelled pieces that do not yield to it, by cause

  template <typename Visit>
  void for_each(Visit visit) const {
    for (auto piece = line.log.first_after(start); piece != line.log.end() && piece->start < until;
         ++piece)
      visit(*piece, Interval{piece->start, piece->end}.clipped_to({start, until}).length());
  }
  bool yields(const Piece& piece) const {
    return late != nullptr && piece.end <= late->end &&
           (piece.anonymous || piece.key.cause == Cause::kHost || piece.key.cause == Cause::kSync);
  }
};

// Step 1: the time up to a late batch. Returns the time of which the host's doings are not known.
DurationNs charge_late_batch(Account& account, Doings& doings) {
  doings.for_each([&](const Piece& piece, DurationNs) {
    if (piece.late_batch && piece.end <= doings.until) doings.late = &piece;
  });
  DurationNs unseen = std::max(DurationNs{}, doings.until - doings.start);
  doings.for_each([&](const Piece& piece, DurationNs length) {
    if (piece.key.cause != Cause::kUnknown) unseen -= length;
    if (doings.yields(piece)) account.charge(doings.late->key, length);
    else if (!piece.anonymous) doings.labelled[static_cast<std::size_t>(piece.key.cause)] += length;
  });
  return unseen;
}

// Labelled pieces, of each cause no more than `most`. Takes what it charges off their length.
void charge_labelled(Account& account, Doings& doings, CauseTimes most) {
  doings.for_each([&](const Piece& piece, DurationNs length) {
    if (piece.anonymous || doings.yields(piece)) return;
    const auto c = static_cast<std::size_t>(piece.key.cause);
    const DurationNs amount = std::min({length, most[c], account.rest});
    account.charge(piece.key, amount);
    most[c] -= amount;
    doings.labelled[c] -= amount;
  });
}

// Step 2: a labelled piece that saves nothing when it goes is not to blame.
void charge_claimed_pieces(Account& account, Doings& doings, const Claims& claims) {
  CauseTimes most = doings.labelled;
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (claims_gaps(c))
      most[c] = std::min(most[c], std::max(DurationNs{}, DurationNs{claims.claims()[c]} - account.charged[c]));
  charge_labelled(account, doings, most);
}

// a * b / c for what is not negative. The product seldom needs more than 63 bits, and then the
// division is many times faster.
std::int64_t scaled(__int128 a, std::int64_t b, __int128 c) {
  const __int128 product = a * b;
  if ((product >> 63) == 0 && (c >> 63) == 0)
    return static_cast<std::int64_t>(product) / static_cast<std::int64_t>(c);
  return static_cast<std::int64_t>(product / c);
}

// Step 4: in proportion where the claims exceed what is left, exactly to the nanosecond.
void charge_claims(Account& account, const Claims& claims, const HostLine* line) {
  Lanes left{};
  __int128 sum = 0;
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    if (!claims_gaps(c)) continue;
    left[c] = std::max<std::int64_t>(0, claims.claims()[c] - account.charged[c].ns);
    sum += left[c];
  }
  if (sum <= 0) return;
  const std::int64_t rest = account.rest.ns;
  __int128 passed = 0;
  std::int64_t given = 0;
  for (std::size_t c = 0; c < kCauseCount; ++c) {
    if (left[c] == 0) continue;
    passed += left[c];
    const std::int64_t share =
        sum <= rest ? left[c] : scaled(passed, rest, sum) - given;
    given += share;
    EvidenceKey key{static_cast<Cause>(c), SubCause::kNone, kNoName, ThreadId{}};
    if (line != nullptr && line->last[c].key.cause == key.cause) key = line->last[c].key;
    account.charge(key, {share});
  }
}

}  // namespace

void Claims::open(TimePoint at, const Lanes& in) {
  frontier_ = in;
  for (std::size_t w = 0; w < kLaneCount; ++w) after_[w] = at.ns - in[w];
  balance_ = claims_ = Lanes{};
}

void Claims::pass(const Arrival& end) {
  for (std::size_t w = 0; w < kLaneCount; ++w) frontier_[w] = std::max(frontier_[w], end.in[w]);
}

void Claims::reach(const Gap& gap, const Lanes& start_in) {
  for (std::size_t i = 0; i < kClaimedWorlds.second; ++i) {
    const std::size_t w = kClaimedWorlds.first[i];
    const std::int64_t shift = gap.start.ns - frontier_[w];
    balance_[w] += shift - after_[w];
    const std::int64_t remains = std::max<std::int64_t>(0, start_in[w] - frontier_[w]);
    std::int64_t claim = (gap.end - gap.start).ns - remains;
    after_[w] = shift + claim;
    if (balance_[w] < 0) {
      claim += balance_[w];
      balance_[w] = std::min<std::int64_t>(0, claim);
    } else if (claim < 0) {
      balance_[w] += claim;
    }
    claims_[w] = std::max<std::int64_t>(0, claim);
    if (w == kAllHostWorld) remains_ = {remains};
  }
}

void divide(const Gap& gap, const OperationReplay* next, NameId next_name, const Claims& claims,
            const HostLine* line, const EngineOptions& options, CauseTimes& charged,
            EvidenceTable& evidence) {
  Account account{gap, {}, charged, evidence, gap.end - gap.start};
  const EvidenceKey unknown{Cause::kUnknown, SubCause::kNone, next_name, ThreadId{}};
  if (next == nullptr) return account.charge(unknown, account.rest);
  // What remains with no host cause at all is idle whatever the host does in that time, so it comes
  // off the front of the gap; labelled pieces are charged for what they add to it. Where the wait
  // came after the launch instead, the pieces get their time back as claims.
  TimePoint from = gap.start;
  // Of an operation whose launch nobody saw that cannot be said: it may have been launched late.
  if (next->launched && claims.remains() > options.launch_latency) {
    const DurationNs remains = std::min(claims.remains(), gap.end - gap.start);
    account.charge({Cause::kDependency, SubCause::kNone, next_name, ThreadId{}}, remains);
    from += remains;
  }
  const TimePoint until = std::max(from, std::min(gap.end, next->launch_start));
  DurationNs unseen = until - from;
  if (line == nullptr) {
    charge_claims(account, claims, line);
  } else {
    Doings doings{*line, from, until};
    unseen = charge_late_batch(account, doings);
    charge_claimed_pieces(account, doings, claims);
    charge_claims(account, claims, line);
    // Of two causes that suffice alone neither has a claim: then what the host was seen at.
    charge_labelled(account, doings, doings.labelled);
  }
  account.charge(unknown, next->launched ? unseen : account.rest);
  account.charge({Cause::kLaunchOverhead, SubCause::kNone, next->launch_name, next->launch_thread},
                 account.rest);
}

}  // namespace gpudiag
