// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Puts what NCCL says of an operation to the kernel that does it (record/collective.hpp). The two have
// no number in common: what joins them is the thread, and the order in which it did things. On one
// thread, NCCL's ranges come before the launch, or before the group's end that launches; the profiler's
// events right after it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/collective.hpp"
#include "record/names.hpp"
#include "record/sink.hpp"
#include "sources/nccl/nccl_calls.hpp"

namespace gpudiag {

/// How far this rank is in one communicator, seen from the host. Records tell little of it: CUPTI holds
/// a buffer back as long as one kernel in it has not ended.
struct NcclProgress {
  std::uint64_t communicator = 0;
  std::uint32_t ranks = 0;        ///< 0: not known
  std::uint32_t rank = kNoRank;
  std::uint64_t called = 0;       ///< operations asked for since the communicator was made, or we listened
  std::vector<CollectiveKind> newest;  ///< the newest of them, at most kNewestKept, the last one last
  /// When the newest was asked for, where its kernel has not ended as far as is known, nor has any other
  /// operation since; kTimeMax where nothing waits.
  TimePoint waiting_since = kTimeMax;

  static constexpr std::size_t kNewestKept = 64;
};

struct NcclJoinCounts {
  std::uint64_t kernels = 0;   ///< of NCCL, while it told of its operations
  std::uint64_t joined = 0;
  std::uint64_t by_profiler = 0;
};

/// A stage between a source and the sink behind it. Kernels of NCCL wait for the next tick, all else
/// passes at once; before NCCL has told of anything, they pass too. Not thread-safe.
class NcclJoin final : public RecordSink {
 public:
  using Intern = std::function<NameId(std::string_view)>;
  /// All outlive it.
  NcclJoin(RecordSink& next, const NameTable& names, Intern intern);

  /// A thread's calls in the order of their time.
  void call(const NcclCall& call, ThreadId thread, TimePoint at);
  void add(const Record& record) override;
  /// Lets go of what waits.
  void flush();

  const NcclJoinCounts& counts() const { return counts_; }
  std::vector<NcclProgress> progress() const;

  /// Calls of a thread beyond these whose kernel has not come are forgotten, oldest first.
  static constexpr std::size_t kCallsKept = 8192;

 private:
  struct Call {
    NcclCall said;
    TimePoint at;
    std::uint64_t group;  ///< those of one group are launched together; a call outside of any is one by itself
  };
  struct Plan {
    TimePoint at;
    std::vector<NcclCall> operations;
  };
  struct Thread {
    std::deque<Call> ranges;
    std::deque<Plan> plans;
    unsigned depth = 0;       ///< of groups
    std::uint64_t group = 0;
  };
  struct Launch {
    CorrelationId correlation = kNoCorrelation;
    ThreadId thread{};
    TimePoint start;
    TimePoint end;
  };
  struct Size {
    std::uint32_t ranks;
    std::uint32_t rank;
  };
  struct Called {
    std::uint64_t count = 0;
    TimePoint newest_at;
    std::deque<CollectiveKind> newest;
  };
  struct Kernel {
    std::string name;  ///< ids may be given to another text
    bool of_nccl = false;
    CollectiveInfo says;  ///< the name
  };

  void note_call(const NcclCall& call, TimePoint at);
  const Kernel& kernel_of(NameId name);
  const Launch* launch_of(const Record& kernel) const;
  void join(Record& kernel, const Launch& launch);
  std::vector<NcclCall> take_ranges(Thread& thread, const Launch& launch, CollectiveKind kind);
  std::vector<NcclCall> take_plan(Thread& thread, const Launch& launch, CollectiveKind kind);
  CollectiveInfo describe(const std::vector<NcclCall>& operations) const;
  std::uint64_t bytes_of(const NcclCall& call, CollectiveKind kind) const;

  RecordSink& next_;
  const NameTable& names_;
  Intern intern_;
  std::unordered_map<ThreadId, Thread> threads_;
  std::unordered_map<std::uint64_t, Size> sizes_;       ///< of communicators
  std::unordered_map<std::uint32_t, Kernel> kernels_;   ///< by name
  std::vector<Launch> launches_;                        ///< by the correlation's last bits; empty before the first call
  std::unordered_map<std::uint64_t, Called> called_;    ///< by communicator
  TimePoint last_end_ = kTimeMin;                       ///< of an operation
  std::vector<Record> waiting_;
  NcclJoinCounts counts_;
};

}  // namespace gpudiag
