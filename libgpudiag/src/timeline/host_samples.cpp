// SPDX-License-Identifier: Apache-2.0
#include "timeline/host_samples.hpp"

#include <algorithm>
#include <tuple>

namespace gpudiag {
namespace {

// Bounds memory: two minutes of a thread and sixteen workers looked at as often as we do.
constexpr std::size_t kKept = 1u << 17;

// What workers do is told by this much time before the end of a wait, however short it was: they make
// the batch all the while, the waiting thread comes late.
constexpr DurationNs kWorkersWindow = milliseconds(50);

// A look stands for as much time as lies between two looks, and no more: of a longer stretch most was
// not seen.
DurationNs stands_for(const HostSample& sample) { return std::max(sample.length(), milliseconds(5)); }

auto order_of(const HostSample& sample) {
  return std::tuple(sample.end, sample.thread, sample.start, sample.state, sample.name, sample.flags,
                    sample.running, sample.queued);
}

bool is_birth_or_end(const HostSample& sample) {
  return sample.state == HostState::kBorn || sample.state == HostState::kGone;
}

// Of a thread that is ready: on a processor, or without one.
void add_ready(HostTimes& times, const HostSample& sample, DurationNs length) {
  (sample.queued > sample.running ? times.queued : times.running) += length;
}

void add_instant(HostTimes& times, const HostSample& sample, DurationNs length) {
  if (sample.state == HostState::kReady) return add_ready(times, sample, length);
  if (DurationNs* blocked = times.blocked_in(sample.state)) *blocked += length;
}

// The whole of a look's time: what it ran and waited for a processor is counted by the kernel; in the
// rest it was blocked, as it is now or as it was at the look before.
void add_whole(HostTimes& times, const HostSample& sample, HostState before) {
  const DurationNs running = std::min(sample.running, sample.length());
  const DurationNs queued = std::min(sample.queued, sample.length() - running);
  times.running += running;
  times.queued += queued;
  const DurationNs rest = sample.length() - running - queued;
  DurationNs* blocked = times.blocked_in(sample.state);
  if (blocked == nullptr) blocked = times.blocked_in(before);
  if (blocked != nullptr) *blocked += rest;
}

}  // namespace

DurationNs* HostTimes::blocked_in(HostState state) {
  switch (state) {
    case HostState::kLock: return &lock;
    case HostState::kNetwork: return &network;
    case HostState::kDisk: return &disk;
    case HostState::kFault: return &fault;
    case HostState::kPipe: return &pipe;
    case HostState::kLog: return &log;
    case HostState::kAsleep: return &asleep;
    case HostState::kUnknown:
    case HostState::kReady:
    case HostState::kBorn:
    case HostState::kGone: return nullptr;
  }
  return nullptr;
}

void HostTimes::add(const HostTimes& other) {
  running += other.running;
  queued += other.queued;
  lock += other.lock;
  network += other.network;
  disk += other.disk;
  fault += other.fault;
  pipe += other.pipe;
  log += other.log;
  asleep += other.asleep;
}

void HostSamples::add(const Record& record) {
  const HostSample sample{record.start,
                          record.end,
                          record.thread,
                          record.state,
                          record.flags,
                          {static_cast<std::int64_t>(std::min<std::uint64_t>(record.value, std::uint64_t{1} << 61))},
                          {static_cast<std::int64_t>(std::min<std::uint64_t>(record.value2, std::uint64_t{1} << 61))},
                          record.name};
  if (samples_.size() >= kKept) samples_.erase(samples_.begin(), samples_.begin() + kKept / 2);
  // Nearly always the last: a live session looks in order of time.
  const auto place = std::upper_bound(
      samples_.begin(), samples_.end(), sample,
      [](const HostSample& a, const HostSample& b) { return order_of(a) < order_of(b); });
  samples_.insert(place, sample);
}

std::vector<HostSample>::const_iterator HostSamples::first_after(TimePoint t) const {
  return std::upper_bound(samples_.begin(), samples_.end(), t,
                          [](TimePoint time, const HostSample& sample) { return time < sample.end; });
}

std::optional<ThreadTimes> HostSamples::thread_in(ThreadId thread, TimePoint start, TimePoint end) const {
  const HostSample* last = nullptr;
  ThreadTimes found;
  for (auto sample = first_after(start); sample != samples_.end() && sample->end <= end; ++sample) {
    if (sample->thread != thread || sample->has(record_flag::kWorker)) continue;
    found.children_known = found.children_known || sample->has(record_flag::kChildrenKnown);
    if (last == nullptr) {
      const DurationNs edge = std::min(sample->end - start, stands_for(*sample));
      add_instant(found.times, *sample, edge);
    } else {
      add_whole(found.times, *sample, last->state);
    }
    if (sample->name != kNoName) found.names[static_cast<std::size_t>(sample->state)] = sample->name;
    last = &*sample;
  }
  if (last == nullptr) return std::nullopt;
  add_instant(found.times, *last, std::min(end - last->end, stands_for(*last)));
  return found;
}

std::optional<WorkerTimes> HostSamples::workers_in(TimePoint start, TimePoint end) const {
  struct Worker {
    ThreadId id{};
    HostTimes times;
    DurationNs total;
    HostState before = HostState::kUnknown;
  };
  std::vector<Worker> workers;
  std::size_t looks = 0, known = 0, full = 0;
  WorkerTimes found;
  const DurationNs before = std::max(end - start, kWorkersWindow);
  for (auto sample = first_after(end - before - before); sample != samples_.end() && sample->end <= end; ++sample) {
    if (!sample->has(record_flag::kWorker)) continue;
    if (sample->state == HostState::kBorn && sample->end >= start - before) found.just_born = true;
    if (is_birth_or_end(*sample) || sample->end <= end - before) continue;
    auto worker = std::find_if(workers.begin(), workers.end(),
                               [&](const Worker& seen) { return seen.id == sample->thread; });
    if (worker == workers.end()) worker = workers.insert(worker, Worker{sample->thread, {}, {}, HostState::kUnknown});
    add_whole(worker->times, *sample, worker->before);
    worker->total += sample->length();
    worker->before = sample->state;
    ++looks;
    known += sample->has(record_flag::kProcessorsKnown) ? 1u : 0u;
    full += sample->has(record_flag::kProcessorsFull) ? 1u : 0u;
  }
  if (workers.empty() && !found.just_born) return std::nullopt;
  found.workers = workers.size();
  found.processors_known = looks > 0 && known * 2 > looks;
  found.processors_full = looks > 0 && full * 2 > looks;
  for (const Worker& worker : workers) {
    const DurationNs idle = worker.times.lock + worker.times.pipe;
    if (idle.ns * 2 > worker.total.ns) continue;
    ++found.active;
    found.busy.add(worker.times);
    found.busy_total += worker.total;
  }
  return found;
}

void HostSamples::forget_before(TimePoint frontier) {
  // What workers did before a wait says what the wait was.
  constexpr DurationNs kBefore = seconds(2);
  if (samples_.empty() || samples_.front().end >= frontier - kBefore - kBefore) return;
  samples_.erase(samples_.begin(), samples_.begin() + (first_after(frontier - kBefore) - samples_.begin()));
}

}  // namespace gpudiag
