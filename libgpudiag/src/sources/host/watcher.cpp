// SPDX-License-Identifier: Apache-2.0
#include "sources/host/watcher.hpp"

#include <unistd.h>

#include <algorithm>

#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

// Some 10 us a worker: the more there are, the less often.
constexpr DurationNs kWorkersPeriod = milliseconds(10);
constexpr DurationNs kManyWorkersPeriod = milliseconds(25);
constexpr std::size_t kFewWorkers = 4;

// Two looks that lie further apart tell nothing of the time between.
constexpr DurationNs kTooFarApart = seconds(2);

constexpr std::string_view kNoProcessor = "wait for a free processor";
constexpr std::string_view kThrottled = "wait for processor time of the cgroup";

}  // namespace

Watcher::Watcher(RecordSink& out, std::function<NameId(std::string_view)> name_of, TimePoint started)
    : out_{out}, name_of_{std::move(name_of)}, started_{started}, own_view_{view_of(static_cast<std::uint32_t>(getpid()))} {}

TimePoint Watcher::due() const {
  const auto period = plan_.period();
  if (!period) return kTimeMax;
  return looked_at_ == kTimeMin ? TimePoint{} : looked_at_ + *period;
}

void Watcher::look(TimePoint at) {
  if (at < due()) return;
  found_ = processors_.look(at);
  if (plan_.workers_wanted(at)) look_at_workers(at);
  else workers_.clear();
  look_at_threads(at);
  looked_at_ = now();  // so that there is a rest, however long looking took
}

std::uint16_t Watcher::flags() const {
  std::uint16_t flags = 0;
  if (found_.known) flags |= record_flag::kProcessorsKnown;
  if (found_.full) flags |= record_flag::kProcessorsFull;
  if (children_known_) flags |= record_flag::kChildrenKnown;
  return flags;
}

void Watcher::emit(Record record, const ThreadLook& seen, std::uint16_t more) {
  record.flags = static_cast<std::uint16_t>(flags() | more);
  if (!seen.held.name.empty()) record.name = name_of_(seen.held.name);
  else if (record.value2 > record.value) record.name = name_of_(found_.throttled ? kThrottled : kNoProcessor);
  out_.add(record);
}

void Watcher::look_at_threads(TimePoint at) {
  const auto& watched = plan_.watched();
  std::erase_if(threads_, [&](const Target& target) {
    return std::none_of(watched.begin(), watched.end(),
                        [&](const Watched& one) { return raw(one.thread) == target.id; });
  });
  for (const Watched& one : watched) {
    const std::uint32_t id = raw(one.thread);
    auto target = std::find_if(threads_.begin(), threads_.end(), [&](const Target& other) { return other.id == id; });
    const bool met = target == threads_.end();
    if (met) target = threads_.insert(target, Target{id, {}, {}});
    // Half a period early is not too early: another thread's look is due now.
    else if (at - target->last.at < DurationNs{one.period.ns / 2}) continue;
    const ThreadLook seen = looker_.look_at_thread(id, own_view_);
    if (!met && seen.alive && target->last.alive && seen.at - target->last.at < kTooFarApart)
      emit(sample_between(target->last, seen, one.thread), seen, 0);
    target->last = seen;
  }
}

void Watcher::meet(const Child& child) {
  workers_.push_back({child.pid, {}, view_of(child.pid)});
  if (child.born < started_) return;
  Record born;
  born.kind = RecordKind::kHostSample;
  born.start = born.end = child.born;
  born.thread = ThreadId{child.pid};
  born.state = HostState::kBorn;
  emit(born, {}, record_flag::kWorker);
}

void Watcher::look_at_workers(TimePoint at) {
  const DurationNs period = workers_.size() > kFewWorkers ? kManyWorkersPeriod : kWorkersPeriod;
  if (workers_looked_at_ != kTimeMin && at - workers_looked_at_ < period) return;
  workers_looked_at_ = at;
  std::vector<std::uint32_t> threads;
  for (const Watched& one : plan_.watched()) threads.push_back(raw(one.thread));
  const auto children = children_.list(threads);
  children_known_ = children.has_value();
  if (!children) return workers_.clear();
  for (const Child& child : *children)
    if (std::none_of(workers_.begin(), workers_.end(), [&](const Target& known) { return known.id == child.pid; }))
      meet(child);
  std::erase_if(workers_, [&](Target& worker) {
    const ThreadLook seen = looker_.look_at_child(worker.id, worker.view);
    const bool known = worker.last.alive;
    const ThreadLook before = worker.last;
    worker.last = seen;
    if (known && seen.alive && seen.at - before.at < kTooFarApart)
      emit(sample_between(before, seen, ThreadId{worker.id}), seen, record_flag::kWorker);
    if (std::any_of(children->begin(), children->end(), [&](const Child& child) { return child.pid == worker.id; }))
      return false;
    Record gone;
    gone.kind = RecordKind::kHostSample;
    gone.start = known ? before.at : at;
    gone.end = at;
    gone.thread = ThreadId{worker.id};
    gone.state = HostState::kGone;
    emit(gone, {}, record_flag::kWorker);
    return true;
  });
}

}  // namespace gpudiag
