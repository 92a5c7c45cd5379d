// SPDX-License-Identifier: Apache-2.0
#include "session/aside.hpp"

#include <algorithm>

#include "fmt/format.h"

namespace gpudiag {
namespace {

// Less than the five seconds by which the delivery of records may lag (CuptiSource::delivered_until), so
// that no iteration of the time without records has been closed as good when it is noticed.
constexpr DurationNs kGoneAfter = seconds(3);
// Ten iterations that the job itself marks, and not one CUDA call. Ranges do not count: an evaluation on
// the processor has them too.
constexpr std::uint64_t kGoneMarks = 10;
// An iteration or two without a record are the delivery's ordinary lag.
constexpr std::uint64_t kSuspectMarks = 3;
// So many rounds may bring buffers that were full before the clock was exchanged.
constexpr int kOldDeliveries = 5;

}  // namespace

void Aside::begin(TimePoint at, std::string_view who, bool asked_for) {
  who_ = who.empty() ? kSomebody : who;
  asked_for_ = asked_for;
  if (open_) return;
  open_ = true;
  began_ = told_until_ = at;
  ++times_;
}

Interval Aside::take_piece(TimePoint until) {
  if (!open_ || until <= told_until_) return {until, until};
  const Interval piece{told_until_, until};
  told_until_ = until;
  return piece;
}

DurationNs Aside::end(TimePoint at) {
  if (!open_) return {};
  open_ = asked_for_ = false;
  const DurationNs length = std::max(at - began_, DurationNs{});
  total_ += length;
  return length;
}

std::string say_stood_aside(std::string_view who, DurationNs length) {
  return fmt::format("stood aside for {} for {:.2f} s: the iterations of that time have no ledger", who,
                     static_cast<double>(length.ns) / 1e9);
}

bool TakeoverWatch::goes_on() const { return marks_ >= kSuspectMarks || clock_exchanged_; }

void TakeoverWatch::clock_exchanged() {
  clock_exchanged_ = true;
  updates_with_records_ = 0;
}

bool TakeoverWatch::update(TimePoint at, std::uint64_t records) {
  if (records != records_ || !last_record_) {
    if (records != records_) marks_ = 0;
    records_ = records;
    last_record_ = at;
    told_ = false;
    if (++updates_with_records_ > kOldDeliveries) clock_exchanged_ = false;
    return false;
  }
  if (records == 0 || told_ || at - *last_record_ < kGoneAfter) return false;
  if (marks_ < kGoneMarks && !clock_exchanged_) return false;
  return told_ = true;
}

TimePoint TakeoverWatch::trusted_until() const { return records_ != 0 && goes_on() ? *last_record_ : kTimeMax; }

}  // namespace gpudiag
