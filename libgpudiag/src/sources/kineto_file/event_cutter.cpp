// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/event_cutter.hpp"

#include <algorithm>
#include <array>

#include "sources/kineto_file/object_end.hpp"

namespace gpudiag::kineto_file {
namespace {

/// No event is that long (the longest known, with whole call stacks, stay below 1 MiB): a quote is
/// missing somewhere.
constexpr std::size_t kMaxEvent = 64u << 20;
constexpr std::size_t kMaxMember = 1u << 20;
/// Text needed around a brace to see whether an event begins there.
constexpr std::size_t kLook = 256;

constexpr std::array<std::string_view, 9> kFirstKeys{"ph", "cat", "name", "pid", "tid",
                                                     "ts", "dur", "args", "id"};

/// Keys that stand beside the events, with their quotes.
constexpr std::array<std::string_view, 6> kTraceKeys{
    "\"traceName\"",     "\"displayTimeUnit\"",  "\"baseTimeNanoseconds\"",
    "\"schemaVersion\"", "\"deviceProperties\"", "\"distributedInfo\""};

bool is_white(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

const char* skip_white_from(const char* at, const char* end) {
  while (at < end && is_white(*at)) ++at;
  return at;
}

}  // namespace

std::size_t EventCutter::cut(std::string_view text, bool last, std::vector<Cut>& events) {
  begin_ = at_ = text.data();
  end_ = begin_ + text.size();
  last_ = last;
  events_ = &events;
  for (bool more = true; more;) {
    switch (where_) {
      case Where::kStart:
        more = step_start();
        break;
      case Where::kMembers:
        more = step_member();
        break;
      case Where::kEvents:
        more = step_event();
        break;
      case Where::kResync:
        more = step_resync();
        break;
      case Where::kDone:
      case Where::kNoTrace:
        at_ = end_;
        more = false;
        break;
    }
  }
  if (last && where_ != Where::kDone && where_ != Where::kNoTrace) truncated_ = true;
  return static_cast<std::size_t>(at_ - begin_);
}

void EventCutter::skip_white(std::string_view also) {
  while (at_ < end_ && (is_white(*at_) || also.find(*at_) != also.npos)) ++at_;
}

bool EventCutter::step_start() {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (!last_ && end_ - at_ < 4) return false;
  if (std::string_view{at_, end_}.starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
  skip_white({});
  if (at_ == end_) return false;
  bare_array_ = *at_ == '[';
  if (*at_ != '{' && !bare_array_) {
    where_ = Where::kNoTrace;
    return true;
  }
  ++at_;
  found_events_ = bare_array_;
  where_ = bare_array_ ? Where::kEvents : Where::kMembers;
  return true;
}

bool EventCutter::step_member() {
  skip_white(",");
  if (at_ == end_) return false;
  if (*at_ != '"') {  // the closing brace, or no JSON: either way nothing of use follows
    truncated_ = truncated_ || *at_ != '}';
    where_ = Where::kDone;
    return true;
  }
  const char* const key_end = find_value_end(at_, end_);
  if (key_end == nullptr) return false;
  const char* value = skip_white_from(key_end, end_);
  if (value < end_ && *value == ':') value = skip_white_from(value + 1, end_);
  if (value == end_) return false;
  const std::string_view key{at_ + 1, static_cast<std::size_t>(key_end - at_ - 2)};
  if (key == "traceEvents" && *value == '[' && !found_events_) {
    found_events_ = true;
    where_ = Where::kEvents;
    at_ = value + 1;
    return true;
  }
  const char* const value_end = find_value_end(value, end_);
  if (value_end == nullptr) return false;
  keep_member(key, {value, static_cast<std::size_t>(value_end - value)});
  at_ = value_end;
  return true;
}

void EventCutter::keep_member(std::string_view key, std::string_view value) {
  if (value.size() < kMaxMember) members_.emplace_back(key, value);
}

bool EventCutter::step_event() {
  skip_white(",");
  if (at_ == end_) return false;
  if (*at_ == '{') return step_object();
  if (*at_ == ']') return step_array_end();
  ++broken_;
  where_ = Where::kResync;
  return true;
}

bool EventCutter::step_object() {
  const ObjectEnd found = find_object_end(at_, end_);
  const auto length = static_cast<std::size_t>(found.end - at_);
  if (found.kind == ObjectEnd::kComplete) {
    events_->push_back({static_cast<std::size_t>(at_ - begin_), length});
    at_ = found.end;
    return true;
  }
  if (found.kind == ObjectEnd::kIncomplete && length < kMaxEvent) {
    if (!last_) return false;
    // The file ends inside this event, unless it only lost its own end.
    const char* next = at_ + 1;
    while (next < end_ && !starts_event(next)) ++next;
    if (next == end_) {
      truncated_ = true;
      at_ = end_;
      where_ = Where::kDone;
      return true;
    }
  }
  ++broken_;
  ++at_;
  where_ = Where::kResync;
  return true;
}

bool EventCutter::step_array_end() {
  const char* next = skip_white_from(at_ + 1, end_);
  const char* after_comma = next < end_ && *next == ',' ? skip_white_from(next + 1, end_) : next;
  if (after_comma == end_ && !last_) return false;
  // A bracket that does not end the events belongs to the rest of a broken one.
  const bool at_file_end = next == end_;
  const bool ends = bare_array_
                        ? at_file_end
                        : at_file_end || *next == '}' || (*next == ',' && *after_comma == '"');
  if (!ends) {
    where_ = Where::kResync;
    ++at_;
    return true;
  }
  at_ = next;
  where_ = bare_array_ ? Where::kDone : Where::kMembers;
  return true;
}

/// A brace after a comma or bracket, before a key that an event has.
bool EventCutter::starts_event(const char* at) const {
  if (*at != '{') return false;
  const char* before = at;
  while (before > begin_ && is_white(before[-1])) --before;
  if (before == begin_ || (before[-1] != ',' && before[-1] != '[')) return false;
  const char* key = skip_white_from(at + 1, end_);
  if (key == end_ || *key != '"') return false;
  const std::string_view rest{
      key + 1, std::min<std::size_t>(kLook, static_cast<std::size_t>(end_ - key - 1))};
  const std::string_view name = rest.substr(0, rest.find('"'));
  return std::ranges::find(kFirstKeys, name) != kFirstKeys.end();
}

/// The bracket that closes the events, by what follows it: inner arrays end with one too.
bool EventCutter::ends_events(const char* at) const {
  if (*at != ']') return false;
  const char* next = skip_white_from(at + 1, end_);
  if (next < end_ && *next == '}') next = skip_white_from(next + 1, end_);
  if (next == end_) return last_;
  if (*next != ',') return false;
  next = skip_white_from(next + 1, end_);
  const std::string_view rest{next,
                              std::min<std::size_t>(kLook, static_cast<std::size_t>(end_ - next))};
  return std::ranges::any_of(kTraceKeys,
                             [&](std::string_view key) { return rest.starts_with(key); });
}

bool EventCutter::step_resync() {
  const char* const from = at_;
  for (; at_ < end_; ++at_) {
    if (*at_ != '{' && *at_ != ']') continue;
    if (!last_ && static_cast<std::size_t>(end_ - at_) < kLook) break;
    if (starts_event(at_) || ends_events(at_)) {
      where_ = Where::kEvents;
      return true;
    }
  }
  // What precedes a brace decides as well: keep some text for the next call.
  if (!last_) at_ = std::max(from, at_ - std::min<std::ptrdiff_t>(kLook, at_ - begin_));
  return false;
}

}  // namespace gpudiag::kineto_file
