// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <array>
#include <deque>
#include <queue>
#include <stdexcept>

#include "copy_engine.hpp"

namespace gpudiag::truth {
namespace {

// Typical of current hardware; the exact figures do not matter, being the same in both runs of a
// pair.
constexpr DurationNs kStreamGap{800};        // between two queued operations of one stream
constexpr DurationNs kEventLatency{1'200};   // from an event's completion to its waiter's start
constexpr DurationNs kBlockedWakeUp{4'000};  // from completion to the return of a blocking call
constexpr DurationNs kThreadWakeUp{
    9'000};  // from one thread's signal to another's next instruction
constexpr std::int64_t kBytesPerMicrosecond = 24'000;  // PCIe 4 x16
constexpr std::int64_t kPageableBytesPerMicrosecond = 9'000;
constexpr DurationNs kCopySetup{1'400};

struct StreamState {
  TimePoint tail = kTimeMin;   // end of the last operation
  TimePoint floor = kTimeMin;  // events it must wait for
  std::deque<TimePoint> ends;  // of the last `queue_depth` calls
  TimePoint done() const { return std::max(tail, floor); }
};

struct EventState {
  TimePoint done = kTimeMin;
  std::uint32_t recorded_by = 0;
};

struct Host {
  TimePoint now;
  std::size_t next = 0;  // action
  bool in_call = false;  // the call of `next` has begun
  std::size_t call = 0;
  std::vector<RangeSpan> open;
};

struct Semaphore {
  std::uint32_t count = 0;
  std::deque<std::uint32_t> waiting;
};

class Simulation {
 public:
  explicit Simulation(const Program& program)
      : program_(program),
        streams_(program.streams.size()),
        events_(program.events),
        hosts_(program.scripts.size()),
        engines_(program.devices) {
    for (std::uint32_t count : program.semaphores) semaphores_.push_back({count, {}});
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
      if (!program.scripts[i].daemon) ++running_;
      if (!program.scripts[i].actions.empty()) schedule(i);
    }
  }

  History run() {
    while (running_ > 0) {
      if (turns_.empty()) throw std::logic_error("every script waits for another one");
      const std::uint32_t host = turns_.top().host;
      turns_.pop();
      if (step(host)) schedule(host);
    }
    return std::move(run_);
  }

 private:
  struct Turn {
    TimePoint at;
    std::uint64_t order;
    std::uint32_t host;
    bool operator<(const Turn& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void schedule(std::uint32_t host) { turns_.push({hosts_[host].now, order_++, host}); }

  // Does what the host does at its present moment; false when it must wait or has ended.
  bool step(std::uint32_t index) {
    Host& host = hosts_[index];
    const Action& action = program_.scripts[index].actions[host.next];
    switch (action.what) {
      case Do::kWork:
        host.now += action.host;
        return advance(index);
      case Do::kEnter:
        host.open.push_back({index, &action, host.now, host.now});
        return advance(index);
      case Do::kLeave:
        leave(host);
        return advance(index);
      case Do::kMark:
        run_.marks.push_back({index, host.now});
        return advance(index);
      case Do::kTake:
        return take(index, action.semaphore);
      case Do::kPut:
        put(action.semaphore, host.now);
        return advance(index);
      default:
        break;
    }
    if (!host.in_call) {
      begin_call(index, action);
      return true;
    }
    end_call(index, action);
    return advance(index);
  }

  bool advance(std::uint32_t index) {
    Host& host = hosts_[index];
    const Script& script = program_.scripts[index];
    if (++host.next < script.actions.size()) return true;
    host.next = 0;
    if (script.daemon) return true;
    --running_;
    return false;
  }

  void leave(Host& host) {
    RangeSpan closed = host.open.back();
    host.open.pop_back();
    closed.end = host.now;
    run_.ranges.push_back(closed);
  }

  bool take(std::uint32_t index, std::uint32_t semaphore) {
    Semaphore& sem = semaphores_[semaphore];
    run_.taken.push_back({semaphore, hosts_[index].now, sem.count == 0});
    if (sem.count == 0) {
      sem.waiting.push_back(index);
      return false;
    }
    --sem.count;
    return advance(index);
  }

  void put(std::uint32_t semaphore, TimePoint at) {
    Semaphore& sem = semaphores_[semaphore];
    if (sem.waiting.empty()) {
      ++sem.count;
      return;
    }
    const std::uint32_t woken = sem.waiting.front();
    sem.waiting.pop_front();
    hosts_[woken].now = at + kThreadWakeUp;
    if (advance(woken)) schedule(woken);
  }

  // Up to the moment when the driver has done its own work: what has to be waited for first is
  // waited for here.
  void begin_call(std::uint32_t index, const Action& action) {
    Host& host = hosts_[index];
    host.call = run_.calls.size();
    host.in_call = true;
    run_.calls.push_back({index, &action, host.now, kTimeMin, host.now, 0});
    switch (action.what) {
      case Do::kLaunch:
      case Do::kGraphLaunch:
      case Do::kCopy:
        wait_for_slot(host, streams_[action.stream]);
        break;
      case Do::kMalloc:
      case Do::kFree:
        wait_until(host, device_done(action.device));
        break;
      default:
        break;
    }
    host.now += action.host;
  }

  void wait_for_slot(Host& host, const StreamState& stream) const {
    if (stream.ends.size() >= program_.queue_depth)
      host.now = std::max(host.now, stream.ends[stream.ends.size() - program_.queue_depth]);
  }

  void wait_until(Host& host, TimePoint done) {
    if (done > host.now) host.now = done + kBlockedWakeUp;
  }

  void end_call(std::uint32_t index, const Action& action) {
    Host& host = hosts_[index];
    Call& call = run_.calls[host.call];
    call.waited_from = host.now;
    switch (action.what) {
      case Do::kLaunch:
      case Do::kGraphLaunch:
      case Do::kCopy:
        queue_operations(host, action);
        break;
      case Do::kRecord:
        events_[action.event] = {std::max(streams_[action.stream].done(), host.now),
                                 static_cast<std::uint32_t>(host.call + 1)};
        break;
      case Do::kStreamWait:
        call.event_call = events_[action.event].recorded_by;
        if (call.event_call != 0)
          streams_[action.stream].floor =
              std::max(streams_[action.stream].floor, events_[action.event].done + kEventLatency);
        break;
      case Do::kEventSync:
        call.event_call = events_[action.event].recorded_by;
        wait_until(host, events_[action.event].done);
        break;
      case Do::kStreamSync:
        wait_until(host, streams_[action.stream].done());
        break;
      case Do::kDeviceSync:
        wait_until(host, device_done(action.device));
        break;
      default:
        break;
    }
    call.end = host.now;
    host.in_call = false;
  }

  void queue_operations(Host& host, const Action& action) {
    StreamState& stream = streams_[action.stream];
    const bool copies = action.what == Do::kCopy;
    const std::uint64_t operations = action.what == Do::kGraphLaunch ? action.count : 1;
    for (std::uint64_t i = 0; i < operations; ++i)
      queue(host, action, copies ? copy_time(action) : action.device_time);
    take_slot(stream);
    if (action.blocks) wait_until(host, stream.tail);
  }

  // A call takes one slot of the launch queue, a graph's too, until its last operation is done.
  void take_slot(StreamState& stream) const {
    stream.ends.push_back(stream.tail);
    if (stream.ends.size() > program_.queue_depth) stream.ends.pop_front();
  }

  TimePoint device_done(std::uint32_t device) const {
    TimePoint done = kTimeMin;
    for (std::size_t i = 0; i < streams_.size(); ++i)
      if (program_.streams[i].device == device) done = std::max(done, streams_[i].done());
    return done;
  }

  static DurationNs copy_time(const Action& action) {
    if (action.device_time.ns > 0) return action.device_time;
    const std::int64_t rate = action.pageable ? kPageableBytesPerMicrosecond : kBytesPerMicrosecond;
    return kCopySetup + DurationNs{static_cast<std::int64_t>(action.count) * 1000 / rate};
  }

  void queue(const Host& host, const Action& action, DurationNs length) {
    StreamState& stream = streams_[action.stream];
    TimePoint start = std::max(host.now + action.latency, stream.floor);
    if (stream.tail != kTimeMin) start = std::max(start, stream.tail + kStreamGap);
    if (action.what == Do::kCopy && action.copy != CopyKind::kDeviceToDevice)
      start = engine(action).reserve(start, length);
    stream.tail = start + length;
    run_.operations.push_back(
        {static_cast<std::uint32_t>(host.call + 1), action.stream, start, stream.tail});
  }

  CopyEngine& engine(const Action& action) {
    const bool down = action.copy == CopyKind::kDeviceToHost;
    return engines_[program_.streams[action.stream].device][down ? 1 : 0];
  }

  const Program& program_;
  std::vector<StreamState> streams_;
  std::vector<EventState> events_;
  std::vector<Host> hosts_;
  std::vector<Semaphore> semaphores_;
  std::vector<std::array<CopyEngine, 2>> engines_;
  std::priority_queue<Turn> turns_;
  std::uint64_t order_ = 0;
  std::size_t running_ = 0;
  History run_;
};

}  // namespace

History execute(const Program& program) {
  return Simulation(program).run();
}

}  // namespace gpudiag::truth
