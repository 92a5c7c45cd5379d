// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "attribution/engine_impl.hpp"

namespace gpudiag {
namespace {

// How far back host time is kept for a device or a thread that has gone quiet.
constexpr DurationNs kRemembered = seconds(60);

}  // namespace

void Engine::Impl::advance(bool final) {
  if (!final && !worth_preparing()) return;
  prepare(final);
  take_cuts(final);
  if (final) {
    replay_until(kTimeMax, true);
    for (Followed& device : devices_)
      end_iteration(device, {kTimeMax, kNoName, kNoIndex, false, false}, false, true);
    close_windows(true);
  } else {
    split_long_iteration();
    close_windows(false);
  }
  compact();
}

// Nothing to sort or join before a boundary has been reached.
bool Engine::Impl::worth_preparing() const {
  if (!fresh_ && in_.store.pending() == 0) return false;
  for (const Followed& device : devices_)
    if (!device.ledger.pending().empty()) return true;
  if (in_.store.pending() > options_.pending_records_limit) return true;
  for (const Loop& loop : in_.loops)
    if (loop.next() != nullptr && loop.next()->at <= in_.ticked) return true;
  if (unmarked_.wants_records()) return true;
  return in_.loops.empty() && !unmarked_.holding() && in_.first != kTimeMax &&
         std::max(in_.first, window_start_) + options_.window <= in_.ticked;
}

void Engine::Impl::prepare(bool final) {
  fresh_ = false;
  for (Loop& loop : in_.loops) loop.prepare();
  for (ThreadLabels& labels : in_.labels) labels.prepare();
  in_.quality[Defect::kDuplicate] += in_.store.prepare();
  tie_operations();
  in_.ties.refresh();
  outstanding_.note_progress();
  while (devices_.size() < in_.ties.devices()) {
    const auto index = static_cast<Index>(devices_.size());
    devices_.push_back({DeviceLedger(index, in_.ties.device_id(index))});
  }
  unmarked_.look(frontier_, final);
  for (Loop& loop : in_.loops) loop.prepare();
  choose_loops();
  replay_.prepare();
  for (Followed& device : devices_) device.ledger.reset_cursor();
  next_call_ = next_orphan_ = 0;
  if (window_start_ == kTimeMin && in_.first != kTimeMax) window_start_ = in_.first;
  // What ended before the last cut's tick and comes only now is late; its iteration is closed. A long
  // call that had not ended by then is not, however long it lies here until the next cut.
  for (Call& call : in_.store.calls) {
    if (call.start >= frontier_) break;
    if (!std::exchange(call.looked_at, true) && call.end < late_before_)
      ++in_.quality[Defect::kLate];
  }
}

void Engine::Impl::tie_operations() {
  for (Operation& operation : in_.store.operations) {
    if (operation.tied || operation.duplicate || operation.call == kNone) continue;
    operation.tied = true;
    in_.ties.launched(in_.store.calls[operation.call].thread, operation.stream,
                      (operation.end - operation.start).ns,
                      operation.type == OperationClass::kCompute);
  }
}

bool Engine::Impl::better(const Loop& a, const Loop& b, Index device) {
  if (a.source() != b.source()) return a.source() < b.source();
  if (a.device() != b.device()) return a.device() == device;
  const bool a_launches = in_.ties.line_in_chain(device, in_.ties.line_of(a.thread()));
  const bool b_launches = in_.ties.line_in_chain(device, in_.ties.line_of(b.thread()));
  return a_launches != b_launches ? a_launches : more_trusted(a, b);
}

void Engine::Impl::choose_loops() {
  for (Index device = 0; device < devices_.size(); ++device) {
    Followed& followed = devices_[device];
    Index best = kNone;
    for (Index loop = 0; loop < in_.loops.size(); ++loop)
      if (best == kNone || better(in_.loops[loop], in_.loops[best], device)) best = loop;
    followed.loop = best;
  }
  for (Index device = 0; device < devices_.size(); ++device)
    if (devices_[device].loop != kNone)
      in_.ties.marks(in_.loops[devices_[device].loop].thread(), device);
}

void Engine::Impl::compact() {
  Store& store = in_.store;
  TimePoint charged = frontier_;
  for (const Followed& device : devices_)
    charged = std::min(charged, std::max(device.ledger.charged_until(), frontier_ - kRemembered));
  for (Index thread = 0; thread < in_.ties.threads(); ++thread)
    if (in_.ties.line_of(thread) == thread) replay_.line(thread).log.forget_before(charged);
  TimePoint cut = frontier_;
  for (Index thread = 0; thread < in_.labels.size(); ++thread) {
    // The silence after a line's last call is cut only when its next call comes.
    const TimePoint at = replay_.line(in_.ties.line_of(thread)).at;
    const TimePoint cut_here = std::min(frontier_, std::max(at, frontier_ - kRemembered));
    in_.labels[thread].forget_before(cut_here);
    cut = std::min(cut, cut_here);
  }
  in_.samples.forget_before(cut);
  for (Loop& loop : in_.loops) loop.compact();
  outstanding_.remember(next_call_);
  store.compact(
      static_cast<Index>(next_call_),
      [&](Index index) {
        const Operation& operation = store.operations[index];
        return operation.duplicate ||
               devices_[operation.device].ledger.retired(operation, frontier_);
      },
      [&](Index from, Index to) { replay_.moved(from, to); });
  late_before_ = std::max(late_before_, in_.ticked);
  next_call_ = next_orphan_ = 0;
}

Engine::Engine(const EngineOptions& options, const NameTable& names, IterationCallback on_iteration)
    : impl_(std::make_unique<Impl>(options, names, std::move(on_iteration))) {}
Engine::~Engine() = default;
void Engine::add(const Record& record) { impl_->add(record); }
void Engine::finish() { impl_->finish(); }
const Quality& Engine::quality() const { return impl_->quality(); }
PatternState Engine::pattern() const { return impl_->pattern(); }

}  // namespace gpudiag
