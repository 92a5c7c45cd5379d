// SPDX-License-Identifier: Apache-2.0
#include "sources/host/thread_look.hpp"

#include <time.h>

#include <algorithm>

#include "sources/host/now.hpp"
#include "sources/host/proc_file.hpp"

namespace gpudiag {
namespace {

// How the kernel numbers the processor clock of another thread or process (clock_getcpuclockid() and
// pthread_getcpuclockid() make the same numbers, but the latter only of a handle).
constexpr clockid_t kSchedulersClock = 2;
constexpr clockid_t kOfThread = 4;

clockid_t processor_clock(std::uint32_t id, bool thread) {
  return static_cast<clockid_t>(~static_cast<std::uint32_t>(id) << 3) | kSchedulersClock | (thread ? kOfThread : 0);
}

/// More exact than /proc: what runs now is counted up to now.
std::optional<DurationNs> processor_time(clockid_t clock) {
  timespec t{};
  if (clock_gettime(clock, &t) != 0) return std::nullopt;
  return DurationNs{std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
}

/// What stands behind the command, which may hold any sign and so ends at the last parenthesis.
std::string_view behind_command(std::string_view stat) {
  const std::size_t end = stat.rfind(')');
  return end == std::string_view::npos ? std::string_view{} : stat.substr(end + 1);
}

BlockedCall confirmed_fault(const BlockedCall& fault, std::string_view stat) {
  const auto state = state_of_stat(stat);
  if (!state) return {};
  return state->state == HostState::kDisk ? fault : *state;
}

std::uint64_t difference(std::optional<DurationNs> before, std::optional<DurationNs> after) {
  if (!before || !after || *after < *before) return 0;
  return static_cast<std::uint64_t>((*after - *before).ns);
}

}  // namespace

ThreadCounts counts_of_schedstat(std::string_view text) {
  ThreadCounts counts;
  if (const auto running = number_of<std::int64_t>(take_word(text))) counts.running = DurationNs{*running};
  if (const auto queued = number_of<std::int64_t>(take_word(text))) counts.queued = DurationNs{*queued};
  counts.arrivals = number_of(take_word(text));
  return counts;
}

std::optional<BlockedCall> state_of_stat(std::string_view text) {
  text = behind_command(text);
  const std::string_view state = take_word(text);
  if (state.size() != 1) return std::nullopt;
  switch (state.front()) {
    case 'R': return BlockedCall{HostState::kReady, {}};
    case 'D': return BlockedCall{HostState::kDisk, "uninterruptible wait"};
    default: return BlockedCall{};
  }
}

std::optional<std::uint64_t> birth_of_stat(std::string_view text) {
  text = behind_command(text);
  constexpr int kWordsBefore = 19;  // from the state, the third field, to the 22nd
  for (int i = 0; i < kWordsBefore; ++i) take_word(text);
  return number_of(take_word(text));
}

Record sample_between(const ThreadLook& before, const ThreadLook& after, ThreadId thread) {
  Record record;
  record.kind = RecordKind::kHostSample;
  record.start = before.at;
  record.end = after.at;
  record.thread = thread;
  record.state = after.held.state;
  const auto length = static_cast<std::uint64_t>((after.at - before.at).ns);
  record.value = std::min(length, difference(before.counts.running, after.counts.running));
  // Counted when it gets a processor, so that it may have begun before the look before.
  record.value2 = std::min(length - record.value, difference(before.counts.queued, after.counts.queued));
  // A wait for a processor that goes on is not in the kernel's count yet.
  const bool never_arrived = before.counts.arrivals && before.counts.arrivals == after.counts.arrivals;
  if (after.held.state == HostState::kReady && before.held.state == HostState::kReady && never_arrived)
    record.value2 = length - record.value;
  return record;
}

ThreadLook ThreadLooker::look(const std::string& folder, const ProcessView& view) const {
  ProcFile<1024> file;
  ThreadLook look;
  look.counts = counts_of_schedstat(file.read((folder + "/schedstat").c_str()));
  auto held = blocked_call(file.read((folder + "/syscall").c_str()), view);
  // Outside of any call a thread is when a page is fetched for it, and when it ends.
  if (!held) held = state_of_stat(file.read((folder + "/stat").c_str()));
  else if (held->state == HostState::kFault) held = confirmed_fault(*held, file.read((folder + "/stat").c_str()));
  look.alive = held.has_value() || look.counts.running.has_value();
  if (held) look.held = *held;
  return look;
}

ThreadLook ThreadLooker::look_at_thread(std::uint32_t thread, const ProcessView& own) const {
  ThreadLook seen = look(proc_ + "/self/task/" + std::to_string(thread), own);
  if (const auto time = processor_time(processor_clock(thread, true))) seen.counts.running = time;
  seen.at = now();
  return seen;
}

ThreadLook ThreadLooker::look_at_child(std::uint32_t pid, const ProcessView& view) const {
  ThreadLook seen = look(proc_ + "/" + std::to_string(pid), view);
  if (const auto time = processor_time(processor_clock(pid, false))) seen.counts.running = time;
  seen.at = now();
  return seen;
}

}  // namespace gpudiag
