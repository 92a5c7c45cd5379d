// SPDX-License-Identifier: Apache-2.0
#include "record/clock.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace gpudiag {
namespace {

// Adjusted clocks slew by up to 500 ppm; faster than twice that is a step.
constexpr std::int64_t kSlewPerMillion = 1000;
// A reading takes some 50 ns; ten microseconds between the two means that we lost the processor.
constexpr std::int64_t kNarrowNs = 10'000;
constexpr std::int64_t kFreshNs = 5'000'000'000;
// Records are delivered well within this time after they end, so older doubts are settled.
constexpr std::int64_t kDoubtNs = 10'000'000'000;

}  // namespace

std::int64_t ClockUnit::to_ns(std::int64_t count) const {
  if (is_ns()) return count;
  // A time of yet another clock may be so far off that its nanoseconds do not fit.
  constexpr double kFar = 4e18;
  const auto distance = static_cast<std::int64_t>(static_cast<std::uint64_t>(count) - static_cast<std::uint64_t>(origin));
  const double product = static_cast<double>(distance) * ns;
  return static_cast<std::int64_t>(std::llround(std::clamp(product, -kFar, kFar)));
}

void ClockMap::add(const ClockAnchor& anchor) {
  Knot next{.foreign_ns = unit_.to_ns(anchor.foreign_ns),
            .session_ns = anchor.before.ns + anchor.width().ns / 2,
            .width_ns = anchor.width().ns};
  if (count_ == 0) {
    knots_[count_++ % kKept] = next;
    return;
  }
  const Knot& last = knot(0);
  const std::int64_t elapsed = next.session_ns - last.session_ns;
  if (elapsed <= 0) return;
  const std::int64_t moved = std::abs(next.offset() - last.offset());
  const std::int64_t slack = elapsed / 1'000'000 * kSlewPerMillion + next.width_ns + last.width_ns + 1000;
  if (moved > slack) {
    next.after_step = true;
    ++steps_;
    if (next.foreign_ns < last.foreign_ns + elapsed) {  // stepped back
      doubt_low_ = next.foreign_ns - elapsed;
      doubt_high_ = last.foreign_ns + elapsed;
      doubt_until_ = next.session_ns + kDoubtNs;
    }
  } else if (next.width_ns > kNarrowNs && elapsed < kFreshNs) {
    return;
  }
  knots_[count_++ % kKept] = next;
}

ClockMap::Converted ClockMap::to_session(std::int64_t foreign) const {
  if (count_ == 0) return {{foreign}, trusted_};
  Converted converted = convert(unit_.to_ns(foreign));
  converted.certain = converted.certain && trusted_;
  return converted;
}

ClockMap::Converted ClockMap::convert(std::int64_t foreign_ns) const {
  const bool doubted = doubt_until_ != 0 && knot(0).session_ns < doubt_until_ && foreign_ns > doubt_low_ &&
                       foreign_ns <= doubt_high_;
  if (foreign_ns >= knot(0).foreign_ns) return {{foreign_ns + knot(0).offset()}, !doubted};
  const std::size_t kept = std::min(count_, kKept);
  // Times come in runs, and while the clock has never stepped each lies between one pair of knots only.
  if (steps_ == 0 && last_older_ + kept >= count_ && last_older_ + 1 < count_) {
    const Knot& older = knots_[last_older_ % kKept];
    const Knot& newer = knots_[(last_older_ + 1) % kKept];
    if (foreign_ns >= older.foreign_ns && foreign_ns < newer.foreign_ns)
      return {between(older, newer, foreign_ns), !doubted};
  }
  for (std::size_t age = 1; age < kept; ++age) {
    const Knot& older = knot(age);
    const Knot& newer = knot(age - 1);
    if (newer.after_step) {
      if (auto converted = across_step(older, newer, foreign_ns)) {
        converted->certain = converted->certain && !doubted;
        return *converted;
      }
    } else if (foreign_ns >= older.foreign_ns && foreign_ns < newer.foreign_ns) {
      last_older_ = count_ - 1 - age;
      return {between(older, newer, foreign_ns), !doubted};
    }
  }
  const Knot& oldest = knot(kept - 1);
  if (foreign_ns < oldest.foreign_ns) return {{foreign_ns + oldest.offset()}, !doubted};
  return {{foreign_ns + knot(0).offset()}, false};  // in the hole that a step forward left
}

TimePoint ClockMap::between(const Knot& older, const Knot& newer, std::int64_t foreign_ns) {
  const auto part = static_cast<double>(foreign_ns - older.foreign_ns) /
                    static_cast<double>(newer.foreign_ns - older.foreign_ns);
  const auto drift = static_cast<double>(newer.offset() - older.offset());
  return {foreign_ns + older.offset() + static_cast<std::int64_t>(drift * part)};
}

// The jump lies somewhere between the two: take the side on which the time falls between them.
std::optional<ClockMap::Converted> ClockMap::across_step(const Knot& older, const Knot& newer,
                                                         std::int64_t foreign_ns) {
  const auto within = [&](std::int64_t session_ns) {
    return session_ns >= older.session_ns && session_ns <= newer.session_ns;
  };
  const std::int64_t by_older = foreign_ns + older.offset();
  const std::int64_t by_newer = foreign_ns + newer.offset();
  if (within(by_older)) return Converted{{by_older}, !within(by_newer)};
  if (within(by_newer)) return Converted{{by_newer}, true};
  return std::nullopt;
}

}  // namespace gpudiag
