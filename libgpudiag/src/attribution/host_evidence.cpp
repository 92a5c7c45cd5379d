// SPDX-License-Identifier: Apache-2.0
#include "attribution/host_evidence.hpp"

#include <algorithm>
#include <array>

namespace gpudiag {
namespace {

bool most_of(DurationNs part, DurationNs whole) { return part.ns * 2 > whole.ns; }

struct Held {
  HostState state;
  SubCause sub_cause;  ///< kNone: it says where, but no cause of the list
};

// `kDisk` first: a page that is fetched comes from a disk too.
constexpr std::array kHeld{
    Held{HostState::kLock, SubCause::kLock},   Held{HostState::kNetwork, SubCause::kNetwork},
    Held{HostState::kDisk, SubCause::kDisk},   Held{HostState::kFault, SubCause::kDisk},
    Held{HostState::kLog, SubCause::kLogging}, Held{HostState::kPipe, SubCause::kNone},
    Held{HostState::kAsleep, SubCause::kNone}};

NameId name_in(const ThreadTimes& seen, HostState state) { return seen.names[static_cast<std::size_t>(state)]; }

// What is said of the thread goes into the name, what it was inside of behind it.
void say(Piece& piece, SubCause sub_cause, NameId name) {
  if (name != kNoName) {
    piece.key.inside = piece.key.name;
    piece.key.name = name;
  }
  if (sub_cause != SubCause::kNone) piece.key.sub_cause = sub_cause;
}

void name_host_time(Piece& piece, const ThreadTimes& seen) {
  const DurationNs length = piece.end - piece.start;
  HostTimes times = seen.times;
  if (most_of(times.disk + times.fault, length)) {
    const HostState most = times.fault > times.disk ? HostState::kFault : HostState::kDisk;
    return say(piece, SubCause::kDisk, name_in(seen, most));
  }
  for (const Held& held : kHeld)
    if (most_of(*times.blocked_in(held.state), length)) return say(piece, held.sub_cause, name_in(seen, held.state));
  if (most_of(times.queued, length)) return say(piece, SubCause::kPreempted, name_in(seen, HostState::kReady));
  // Inside an operator or a Python frame, that is the better name for work.
  if (most_of(times.running, length) && piece.key.sub_cause == SubCause::kNone) piece.key.sub_cause = SubCause::kCpu;
}

// Storage, or the network in its place.
SubCause reading(const HostTimes& times, DurationNs whole) {
  if (most_of(times.fault, whole)) return SubCause::kPageFaults;
  return most_of(times.disk + times.fault + times.network, whole) ? SubCause::kIoWait : SubCause::kNone;
}

SubCause loading_by_workers(const WorkerTimes& workers) {
  // Of few that work while the rest have nothing to do, nobody knows why: one slow sample, or order.
  if (workers.active == 0 || workers.active * 2 < workers.workers) return SubCause::kNone;
  const HostTimes& busy = workers.busy;
  if (const SubCause io = reading(busy, workers.busy_total); io != SubCause::kNone) return io;
  if (!workers.processors_known) return SubCause::kNone;
  const DurationNs computing = busy.running + busy.queued;
  if (most_of(computing, workers.busy_total) && workers.processors_full) return SubCause::kWorkersCpuBound;
  if (most_of(computing + busy.asleep, workers.busy_total) && !workers.processors_full) return SubCause::kTooFewWorkers;
  return SubCause::kNone;
}

void name_loading(Piece& piece, const std::optional<ThreadTimes>& seen, const HostSamples& samples) {
  const DurationNs length = piece.end - piece.start;
  SubCause& sub_cause = piece.key.sub_cause;
  const SubCause own = seen ? reading(seen->times, length) : SubCause::kNone;
  if (sub_cause == SubCause::kInline) {
    if (own != SubCause::kNone) sub_cause = own;
    return;
  }
  // Where others want the processors too it works and waits for one by turns.
  const bool works = seen && most_of(seen->times.running + seen->times.queued, length) &&
                     seen->times.running.ns * 4 > length.ns;
  const auto workers = samples.workers_in(piece.start, piece.end);
  if (!workers) {
    if (own != SubCause::kNone) sub_cause = own;
    else if (works && seen->children_known) sub_cause = SubCause::kInline;
  } else if (workers->just_born) {
    sub_cause = SubCause::kWorkerStart;
  } else if (works) {
    sub_cause = SubCause::kUnpickling;
  } else {
    sub_cause = loading_by_workers(*workers);
  }
}

}  // namespace

void name_by_samples(std::vector<Piece>& pieces, std::size_t first, const HostSamples& samples) {
  if (samples.empty()) return;
  for (std::size_t i = first; i < pieces.size(); ++i) {
    Piece& piece = pieces[i];
    if (piece.anonymous || piece.key.name == kOwnCode) continue;
    const SubCause known = piece.key.sub_cause;
    const bool host = piece.key.cause == Cause::kHost &&
                      (known == SubCause::kNone || known == SubCause::kDispatch || known == SubCause::kPython);
    const bool loading =
        piece.key.cause == Cause::kDataLoading && (known == SubCause::kNone || known == SubCause::kInline);
    if (!host && !loading) continue;
    const auto seen = samples.thread_in(piece.key.thread, piece.start, piece.end);
    if (loading) name_loading(piece, seen, samples);
    else if (seen) name_host_time(piece, *seen);
  }
}

}  // namespace gpudiag
