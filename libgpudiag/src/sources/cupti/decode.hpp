// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// CUPTI's activity records to ours. Fields are read from the part of each struct that all versions of
// CUDA 12 and 13 share; what came later is read only where the CUPTI at hand writes it.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/clock.hpp"
#include "record/names.hpp"
#include "record/sink.hpp"
#include "sources/api_class.hpp"
#include "sources/cupti/buffer_pool.hpp"
#include "sources/cupti/cupti_abi.hpp"
#include "sources/cupti/markers.hpp"
#include "sources/cupti/names_cache.hpp"

namespace gpudiag {

/// What came in, for the session's self-checks.
struct DecodedCounts {
  std::uint64_t calls = 0;
  std::uint64_t launches = 0;    ///< API calls that launch kernels or graphs and did not fail
  std::uint64_t operations = 0;
  std::uint64_t others = 0;
  std::uint64_t uncertain = 0;   ///< times that lay around a step of CUPTI's clock
};

/// Not thread-safe: the drain thread owns it.
class ActivityDecoder {
 public:
  ActivityDecoder(const CuptiTable& cupti, NameTable& names);

  /// Passes on every record of `buffer`, in its order, but for those that need another one's help.
  /// False where CUPTI could not read it to its end.
  bool decode(const BufferPool::Filled& buffer, const ClockMap& clock, RecordSink& sink);
  /// After the last buffer of a round: passes on the records that waited for others, with what has
  /// been found; those whose calls have not been seen wait for one more round.
  void finish_round(RecordSink& sink);
  /// NVTX ranges that CUPTI records go to `take`; null, as in the beginning: nowhere.
  void set_range_sink(MarkerPairs::Take take) { take_range_ = std::move(take); }
  /// Nothing of what has been seen has to do with what will come.
  void forget_open_ranges() { markers_.clear(); }
  /// The time of the first host call in `buffer`, in whatever clock it is; 0 where there is none.
  std::uint64_t first_call_time(const BufferPool::Filled& buffer) const;
  /// A call that came by another way than an activity record.
  void note_call(const Record& call);
  /// Kernel names may point to other text from now on (a module was unloaded).
  void forget_names() { kernel_names_.clear(); }

  struct Function {
    NameId name = kNoName;
    ApiTraits traits;
    bool known = false;
  };
  /// Name and class of an API function by CUPTI's number.
  const Function& function(CUpti_CallbackDomain domain, std::uint32_t callback);

  const DecodedCounts& counts() const { return counts_; }

 private:
  struct Call {
    CorrelationId correlation = kNoCorrelation;
    ThreadId thread{};
    TimePoint start;
    TimePoint end;
  };
  struct Waiting {
    Record record;
    std::uint64_t sync_id = 0;
    bool waited = false;
  };

  void add(const CUpti_Activity& activity, const ClockMap& clock, RecordSink& sink);
  void add_kernel(const CUpti_ActivityKernel10& kernel, const ClockMap& clock, RecordSink& sink);
  void add_memcpy(const CUpti_ActivityMemcpy6& copy, const ClockMap& clock, RecordSink& sink);
  void add_peer_copy(const CUpti_ActivityMemcpyPtoP4& copy, const ClockMap& clock, RecordSink& sink);
  void add_memset(const CUpti_ActivityMemset4& set, const ClockMap& clock, RecordSink& sink);
  void add_graph(const CUpti_ActivityGraphTrace2& graph, const ClockMap& clock, RecordSink& sink);
  void add_call(const CUpti_ActivityAPI& call, bool driver, const ClockMap& clock, RecordSink& sink);
  void add_sync(const CUpti_ActivitySynchronization2& sync, const ClockMap& clock);
  void add_event(const CUpti_ActivityCudaEvent2& event);
  void add_overhead(const CUpti_ActivityOverhead3& overhead, const ClockMap& clock, RecordSink& sink);
  void set_times(Record& record, std::uint64_t start, std::uint64_t end, const ClockMap& clock);
  void emit_operation(const Record& record, RecordSink& sink);
  const Call* find_call(CorrelationId correlation) const;

  static constexpr std::size_t kCallsKept = 16'384;
  static constexpr std::size_t kEventsKept = 16'384;
  static constexpr std::size_t kWaitingLimit = 100'000;
  static constexpr std::size_t kContextsKept = 1024;

  const CuptiTable& cupti_;
  NameTable& names_;
  KernelNames kernel_names_;
  MarkerPairs markers_;
  MarkerPairs::Take take_range_;
  std::array<std::vector<Function>, 2> functions_;   // driver, runtime
  std::vector<Call> calls_;                          // by correlation, the latest of each slot
  struct EventRecord {
    std::uint64_t sync_id = 0;
    CorrelationId correlation = kNoCorrelation;
  };
  std::vector<EventRecord> events_;                  // by sync id, the latest of each slot
  std::vector<Waiting> waiting_;
  std::unordered_map<std::uint32_t, DeviceId> context_devices_;
  ContextId last_context_{0xffffffffu};
  DecodedCounts counts_;
};

}  // namespace gpudiag
