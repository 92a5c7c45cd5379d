// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "record/collective.hpp"

namespace gpudiag::nsys_file {
namespace {

using Communicator = std::pair<std::uint32_t, std::uint64_t>;  ///< process, id

/// A stretch of a thread in which kernels of these calls are launched: one call, or the end of a group.
struct Scope {
  TimePoint start;
  TimePoint end;
  std::vector<const NcclCall*> calls;
  std::vector<Record*> kernels;
};

bool is_nccl_kernel(std::string_view name) {
  return name.find("ncclDevKernel") != name.npos || name.find("ncclKernel") != name.npos ||
         name.find("ncclSymkDevKernel") != name.npos;
}

bool sizes_a_part(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

/// Of one thread, whose calls are in order.
std::vector<Scope> scopes_of(const std::vector<const NcclCall*>& calls) {
  std::vector<Scope> scopes;
  std::vector<const NcclCall*> group;
  int depth = 0;
  for (const NcclCall* call : calls) {
    if (call->name == "ncclGroupStart") {
      ++depth;
    } else if (call->name == "ncclGroupEnd") {
      depth = std::max(depth - 1, 0);
      if (depth == 0) scopes.push_back({call->start, call->end, std::exchange(group, {}), {}});
    } else if (collective_kind_named(call->name) != CollectiveKind::kUnknown) {
      if (depth > 0) group.push_back(call);
      else scopes.push_back({call->start, call->end, {call}, {}});
    }
  }
  return scopes;
}

Scope* scope_at(std::vector<Scope>& scopes, TimePoint time) {
  const auto behind = std::ranges::upper_bound(scopes, time, {}, &Scope::start);
  if (behind == scopes.begin()) return nullptr;
  Scope& scope = *std::prev(behind);
  return time < scope.end ? &scope : nullptr;
}

class Descriptions {
 public:
  Descriptions(NameTable& names, const std::vector<NcclCall>& nccl) : names_{names} {
    for (const NcclCall& call : nccl)
      if (call.payload.communicator && call.payload.ranks)
        communicators_[{raw(call.process), *call.payload.communicator}] = {call.payload.rank.value_or(kNoRank),
                                                                          *call.payload.ranks};
  }

  void describe(Scope& scope) {
    std::ranges::sort(scope.kernels, {}, [](const Record* kernel) { return kernel->start; });
    if (scope.kernels.size() == 1) {
      tag(*scope.kernels.front(), together(scope.calls, kind_of(*scope.kernels.front())));
    } else if (scope.kernels.size() == scope.calls.size()) {
      for (std::size_t i = 0; i < scope.calls.size(); ++i)
        tag(*scope.kernels[i], together({scope.calls[i]}, kind_of(*scope.kernels[i])));
    }
  }

 private:
  CollectiveKind kind_of(const Record& kernel) const { return collective_kind_named(names_.text(kernel.name)); }

  /// What a kernel of all `calls` does. Nothing where they do not fit the kernel. Of a transfer both
  /// ways the larger one counts: they run at the same time.
  std::optional<CollectiveInfo> together(const std::vector<const NcclCall*>& calls, CollectiveKind kernel) const {
    std::optional<CollectiveInfo> all;
    std::uint64_t out = 0;
    std::uint64_t in = 0;
    for (const NcclCall* call : calls) {
      const CollectiveInfo one = info_of(*call);
      const bool fits = kernel == CollectiveKind::kUnknown || one.kind == kernel ||
                        (is_point_to_point(kernel) && is_point_to_point(one.kind));
      if (!fits) return std::nullopt;
      (one.kind == CollectiveKind::kRecv ? in : out) += one.bytes;
      if (!all) all = one;
      else keep_common(*all, one);
      all->bytes = std::max(in, out);
    }
    return all;
  }

  static void keep_common(CollectiveInfo& all, const CollectiveInfo& one) {
    if (all.kind != one.kind) all.kind = CollectiveKind::kSendRecv;
    if (all.peer != one.peer) all.peer = kNoRank;
    if (all.root != one.root) all.root = kNoRank;
    if (all.reduction != one.reduction) all.reduction.clear();
    if (all.datatype != one.datatype) all.datatype.clear();
    if (all.group == one.group) return;
    all.group.clear();
    all.group_size = 0;
    all.rank_in_group = kNoRank;
  }

  CollectiveInfo info_of(const NcclCall& call) const {
    CollectiveInfo info;
    info.kind = collective_kind_named(call.name);
    info.bytes = call.payload.bytes.value_or(0);
    info.peer = call.payload.peer.value_or(kNoRank);
    info.root = call.payload.root.value_or(kNoRank);
    info.reduction = call.payload.reduction;
    info.datatype = datatype_named(call.payload.datatype);
    if (call.payload.communicator) {
      info.group = fmt::format("{:x}", *call.payload.communicator);
      const auto found = communicators_.find({raw(call.process), *call.payload.communicator});
      if (found != communicators_.end()) {
        info.rank_in_group = found->second.rank;
        info.group_size = found->second.world_size;
      }
    }
    // NCCL is told a rank's part; how many there are, only where the communicator was made.
    if (sizes_a_part(info.kind)) info.bytes *= info.group_size;
    return info;
  }

  void tag(Record& kernel, const std::optional<CollectiveInfo>& info) {
    if (info) kernel.value2 = value2_of({names_.intern(text_of(*info)), kNoSequence});
  }

  NameTable& names_;
  std::map<Communicator, ProcessRank> communicators_;
};

}  // namespace

void want_launches(const Builder& builder, const std::vector<NcclCall>& nccl, CallIndex& calls) {
  if (nccl.empty()) return;
  builder.contents.records.for_each([&](const Record& record) {
    if (record.kind == RecordKind::kKernel && is_nccl_kernel(builder.contents.names.text(record.name)))
      calls.want(record.process, record.correlation);
  });
}

void describe_collectives(Builder& builder, std::vector<NcclCall> nccl, const CallIndex& calls) {
  if (nccl.empty()) return;
  // A call before what is called inside it.
  std::ranges::stable_sort(nccl, [](const NcclCall& a, const NcclCall& b) {
    return std::tie(a.start, b.end) < std::tie(b.start, a.end);
  });
  using Thread = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Thread, std::vector<const NcclCall*>> by_thread;
  for (const NcclCall& call : nccl) by_thread[{raw(call.process), raw(call.thread)}].push_back(&call);
  std::map<Thread, std::vector<Scope>> scopes;
  for (const auto& [thread, of_thread] : by_thread) scopes[thread] = scopes_of(of_thread);

  builder.contents.records.for_each([&](Record& record) {
    if (record.kind != RecordKind::kKernel || !is_nccl_kernel(builder.contents.names.text(record.name))) return;
    const CallIndex::Call* launch = calls.find(record.process, record.correlation);
    if (launch == nullptr) return;
    const auto found = scopes.find({raw(record.process), raw(launch->thread)});
    if (found == scopes.end()) return;
    if (Scope* scope = scope_at(found->second, launch->start)) scope->kernels.push_back(&record);
  });
  Descriptions descriptions{builder.contents.names, nccl};
  for (auto& [thread, of_thread] : scopes)
    for (Scope& scope : of_thread) descriptions.describe(scope);
}

std::map<std::uint32_t, ProcessRank> ranks_of(const std::vector<NcclCall>& nccl) {
  std::map<std::uint32_t, ProcessRank> ranks;
  for (const NcclCall& call : nccl) {
    if (!call.payload.ranks || !call.payload.rank) continue;
    ProcessRank& rank = ranks[raw(call.process)];
    if (*call.payload.ranks > rank.world_size) rank = {*call.payload.rank, *call.payload.ranks};
  }
  return ranks;
}

}  // namespace gpudiag::nsys_file
