// SPDX-License-Identifier: Apache-2.0
#include "sources/nccl/nccl_join.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "fmt/format.h"
#include "timeline/communication_kernel.hpp"

namespace gpudiag {
namespace {

// A device has some 1,024 launches before it, of which each takes a few correlation ids.
constexpr std::size_t kLaunchesKept = 1u << 15;

constexpr std::array<std::string_view, 5> kReductions{"sum", "prod", "max", "min", "avg"};

/// NCCL makes all of these of sends and receives, in one kernel.
bool by_messages(CollectiveKind kind) {
  return is_point_to_point(kind) || kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}

/// Whether a kernel of the kind `kernel`, as far as its name tells, can do the operation.
bool may_do(CollectiveKind kernel, CollectiveKind operation) {
  if (kernel == CollectiveKind::kUnknown || operation == CollectiveKind::kUnknown) return true;
  return kernel == operation || (by_messages(kernel) && by_messages(operation));
}

/// "float32" of "ncclFloat32"; empty where NCCL has no name for it.
std::string datatype_of(const NcclCall& call) {
  std::string_view type = word_of(call.datatype);
  if (type == "Unknown") return {};
  if (type.starts_with("nccl")) type.remove_prefix(4);
  return datatype_named(type);
}

CollectiveKind kind_of(const NcclCall& call) { return collective_kind_named(word_of(call.function)); }

}  // namespace

NcclJoin::NcclJoin(RecordSink& next, const NameTable& names, Intern intern)
    : next_{next}, names_{names}, intern_{std::move(intern)} {}

void NcclJoin::call(const NcclCall& call, ThreadId thread, TimePoint at) {
  if (launches_.empty()) launches_.resize(kLaunchesKept);
  if (call.ranks != 0) sizes_[call.communicator] = {call.ranks, call.rank};
  Thread& of = threads_[thread];
  switch (call.source) {
    case NcclCall::Source::kCommunicator: return;
    case NcclCall::Source::kGroupStart:
      if (of.depth++ == 0) ++of.group;
      return;
    case NcclCall::Source::kGroupEnd:
      if (of.depth > 0) --of.depth;
      return;
    case NcclCall::Source::kRange:
      if (of.depth == 0) ++of.group;
      note_call(call, at);
      of.ranges.push_back({call, at, of.group});
      if (of.ranges.size() > kCallsKept) of.ranges.pop_front();
      return;
    case NcclCall::Source::kLaunch:
      of.plans.push_back({at, {}});
      if (of.plans.size() > kCallsKept) of.plans.pop_front();
      return;
    case NcclCall::Source::kOperation:
      if (!of.plans.empty()) of.plans.back().operations.push_back(call);
      return;
  }
}

void NcclJoin::note_call(const NcclCall& call, TimePoint at) {
  Called& called = called_[call.communicator];
  ++called.count;
  called.newest_at = std::max(called.newest_at, at);
  called.newest.push_back(kind_of(call));
  if (called.newest.size() > NcclProgress::kNewestKept) called.newest.pop_front();
}

const NcclJoin::Kernel& NcclJoin::kernel_of(NameId name) {
  Kernel& kernel = kernels_[raw(name)];
  const std::string_view text = names_.text(name);
  if (kernel.name == text) return kernel;
  kernel.name = text;
  kernel.of_nccl = text.find("nccl") != std::string_view::npos;
  kernel.says = {};
  if (kernel.of_nccl) {
    static const CommunicationTable kTable;
    if (const auto known = kTable.look_up(text)) kernel.says = *known;
    else kernel.of_nccl = false;
  }
  return kernel;
}

void NcclJoin::add(const Record& record) {
  if (launches_.empty()) return next_.add(record);
  if (record.is_operation() && !record.has(record_flag::kDefective)) last_end_ = std::max(last_end_, record.end);
  switch (record.kind) {
    case RecordKind::kApiCall:
      if (record.api == ApiClass::kLaunch)
        launches_[raw(record.correlation) % kLaunchesKept] = {record.correlation, record.thread, record.start, record.end};
      break;
    case RecordKind::kKernel:
      if (!kernel_of(record.name).of_nccl) break;
      // The kernels of a graph share the launch of the graph, which says nothing of any of them.
      if (raw(record.graph) != 0 || record.value2 != 0) break;
      waiting_.push_back(record);
      return;
    case RecordKind::kTick: flush(); break;
    default: break;
  }
  next_.add(record);
}

const NcclJoin::Launch* NcclJoin::launch_of(const Record& kernel) const {
  const Launch& launch = launches_[raw(kernel.correlation) % kLaunchesKept];
  return launch.correlation == kernel.correlation && kernel.correlation != kNoCorrelation ? &launch : nullptr;
}

void NcclJoin::flush() {
  std::stable_sort(waiting_.begin(), waiting_.end(), [this](const Record& a, const Record& b) {
    const Launch* of_a = launch_of(a);
    const Launch* of_b = launch_of(b);
    return (of_a ? of_a->start : a.start) < (of_b ? of_b->start : b.start);
  });
  for (Record& kernel : waiting_) {
    ++counts_.kernels;
    if (const Launch* launch = launch_of(kernel)) join(kernel, *launch);
    next_.add(kernel);
  }
  waiting_.clear();
}

// Of the group that ended last before the launch: what its first communicator and this kernel's kind
// share. What came before has lost its kernel, or went into a graph.
std::vector<NcclCall> NcclJoin::take_ranges(Thread& thread, const Launch& launch, CollectiveKind kind) {
  std::vector<NcclCall> taken;
  std::deque<Call>& ranges = thread.ranges;
  const auto fits = [&](const Call& call) { return call.at <= launch.end && may_do(kind, kind_of(call.said)); };
  const auto last = std::find_if(ranges.rbegin(), ranges.rend(), fits);
  if (last == ranges.rend()) return taken;
  const std::uint64_t group = last->group;
  while (ranges.front().group < group) ranges.pop_front();
  const auto first = std::find_if(ranges.begin(), ranges.end(), fits);
  const std::uint64_t communicator = first->said.communicator;
  for (auto at = first; at != ranges.end() && at->group == group;) {
    if (at->said.communicator != communicator || !fits(*at)) {
      ++at;
      continue;
    }
    taken.push_back(at->said);
    at = ranges.erase(at);
  }
  return taken;
}

// Plans whose kernel never came are older than this launch.
std::vector<NcclCall> NcclJoin::take_plan(Thread& thread, const Launch& launch, CollectiveKind kind) {
  std::deque<Plan>& plans = thread.plans;
  while (!plans.empty() && plans.front().at < launch.start) plans.pop_front();
  if (plans.empty() || plans.front().operations.empty()) return {};
  if (!may_do(kind, kind_of(plans.front().operations.front()))) return {};
  std::vector<NcclCall> taken = std::move(plans.front().operations);
  plans.pop_front();
  return taken;
}

std::uint64_t NcclJoin::bytes_of(const NcclCall& call, CollectiveKind kind) const {
  std::uint64_t bytes = call.amount;
  if (call.source == NcclCall::Source::kOperation) bytes *= datatype_bytes(datatype_of(call));
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter: {
      // NCCL counts a rank's part.
      const auto size = sizes_.find(call.communicator);
      return size == sizes_.end() ? 0 : bytes * size->second.ranks;
    }
    default: return bytes;
  }
}

CollectiveInfo NcclJoin::describe(const std::vector<NcclCall>& operations) const {
  const NcclCall& first = operations.front();
  CollectiveInfo info;
  info.kind = kind_of(first);
  if (first.communicator != 0) info.group = fmt::format("nccl:{:016x}", first.communicator);
  if (const auto size = sizes_.find(first.communicator); size != sizes_.end() && first.communicator != 0) {
    info.group_size = size->second.ranks;
    info.rank_in_group = size->second.rank;
  }
  info.datatype = datatype_of(first);
  if (const auto text = word_of(first.algorithm); !text.empty() && text != "Unknown") info.algorithm = text;
  if (const auto text = word_of(first.protocol); !text.empty() && text != "Unknown") info.protocol = text;
  for (std::string* text : {&info.algorithm, &info.protocol})
    std::transform(text->begin(), text->end(), text->begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (first.reduction >= 0 && static_cast<std::size_t>(first.reduction) < kReductions.size())
    info.reduction = kReductions[static_cast<std::size_t>(first.reduction)];
  bool same_peer = true;
  for (const NcclCall& call : operations) {
    info.bytes += bytes_of(call, kind_of(call));
    info.channels = std::max(info.channels, call.channels);
    if (kind_of(call) != info.kind) info.kind = CollectiveKind::kSendRecv;
    same_peer = same_peer && call.root == first.root;
  }
  if (first.root >= 0 && same_peer) {
    const auto other = static_cast<std::uint32_t>(first.root);
    if (is_point_to_point(info.kind)) info.peer = other;
    else if (info.kind == CollectiveKind::kBroadcast || info.kind == CollectiveKind::kReduce ||
             info.kind == CollectiveKind::kGather || info.kind == CollectiveKind::kScatter)
      info.root = other;
  }
  return info;
}

std::vector<NcclProgress> NcclJoin::progress() const {
  std::vector<NcclProgress> all;
  for (const auto& [communicator, called] : called_) {
    NcclProgress one;
    one.communicator = communicator;
    one.called = called.count;
    one.newest.assign(called.newest.begin(), called.newest.end());
    if (const auto size = sizes_.find(communicator); size != sizes_.end()) {
      one.ranks = size->second.ranks;
      one.rank = size->second.rank;
    }
    bool open = false;
    for (const auto& [thread, of] : threads_)
      for (const Call& call : of.ranges) open = open || call.said.communicator == communicator;
    if (open && last_end_ < called.newest_at) one.waiting_since = called.newest_at;
    all.push_back(std::move(one));
  }
  return all;
}

void NcclJoin::join(Record& kernel, const Launch& launch) {
  const auto found = threads_.find(launch.thread);
  if (found == threads_.end()) return;
  const CollectiveInfo says = kernel_of(kernel.name).says;
  const CollectiveKind kind = says.kind;
  const std::vector<NcclCall> ranges = take_ranges(found->second, launch, kind);
  const std::vector<NcclCall> plan = take_plan(found->second, launch, kind);
  if (ranges.empty() && plan.empty()) return;
  CollectiveInfo info = describe(plan.empty() ? ranges : plan);
  CollectiveTag tag;
  if (!plan.empty()) {
    ++counts_.by_profiler;
    if (!by_messages(info.kind)) tag.sequence = static_cast<std::uint32_t>(plan.front().sequence);
    if (!ranges.empty()) {
      const CollectiveInfo called = describe(ranges);
      if (info.reduction.empty()) info.reduction = called.reduction;
      if (info.bytes == 0) info.bytes = called.bytes;  // of a type that NCCL has no name for
      if (by_messages(info.kind)) info.kind = called.kind;  // an all-to-all is sends and receives to the profiler
    }
  }
  if (info.datatype.empty()) info.datatype = says.datatype;
  if (info.reduction.empty()) info.reduction = says.reduction;
  if (info.algorithm.empty()) info.algorithm = says.algorithm;
  if (info.protocol.empty()) info.protocol = says.protocol;
  ++counts_.joined;
  tag.about = intern_(text_of(info));
  kernel.value2 = value2_of(tag);
}

}  // namespace gpudiag
