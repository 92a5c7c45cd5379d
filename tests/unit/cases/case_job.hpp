// SPDX-License-Identifier: Apache-2.0
// A job written down as its main thread runs it, one call after the other; the GPU follows in stream
// order, as CUDA has it. What comes out is records, and from them the diagnosis that a user would get.
#pragma once

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/findings.hpp"
#include "report/rank_collector.hpp"
#include "support/records.hpp"

namespace gpudiag::testing {

/// One host thread, one stream of device 0.
class CaseJob {
 public:
  EngineOptions options;

  TimePoint now() const { return now_; }

  /// The thread does something that no record tells of.
  void silence(DurationNs length) { now_ += length; }

  void call(ApiClass api_class, std::string_view name, DurationNs length, std::uint16_t flags = 0) {
    Record record = api(api_class, now_, now_ + length, corr(++last_id_));
    record.name = names_.intern(name);
    record.flags = flags;
    records_.push_back(record);
    now_ += length;
  }

  void launch(DurationNs runs, std::string_view name = "gemm") {
    call(ApiClass::kLaunch, "cudaLaunchKernel", microseconds(5));
    Record record = run(RecordKind::kKernel, runs);
    record.name = names_.intern(name);
    records_.push_back(record);
  }

  /// `count` launches, one each `apart`, of kernels that run for `runs`.
  void launches(int count, DurationNs apart, DurationNs runs, std::string_view name = "gemm") {
    for (int i = 0; i < count; ++i) {
      launch(runs, name);
      silence(apart - microseconds(5));
    }
  }

  /// One launch of a graph with `nodes` kernels.
  void launch_graph(int nodes, DurationNs runs) {
    call(ApiClass::kGraphLaunch, "cudaGraphLaunch", microseconds(20));
    for (int i = 0; i < nodes; ++i) records_.push_back(run(RecordKind::kKernel, runs));
  }

  /// From or to pageable memory: the call returns when the copy is over.
  void blocking_copy(CopyKind kind, std::uint64_t bytes, DurationNs runs) {
    const TimePoint began = now_;
    call(ApiClass::kMemcpyAsync, "cudaMemcpyAsync", microseconds(6));
    Record& of_call = records_.back();
    Record copy = run(RecordKind::kMemcpy, runs);
    copy.copy = kind;
    copy.value = bytes;
    copy.flags = record_flag::kPageable | record_flag::kAsync;
    now_ = of_call.end = std::max(began, copy.end) + microseconds(2);
    records_.push_back(copy);
  }

  /// From or to pinned memory: the call returns at once. With kPageable it does so too, and is waited
  /// for by the next call.
  void async_copy(CopyKind kind, std::uint64_t bytes, DurationNs runs, std::uint16_t flags = 0) {
    call(ApiClass::kMemcpyAsync, "cudaMemcpyAsync", microseconds(6));
    Record copy = run(RecordKind::kMemcpy, runs);
    copy.copy = kind;
    copy.value = bytes;
    copy.flags = static_cast<std::uint16_t>(record_flag::kAsync | flags);
    records_.push_back(copy);
  }

  /// Returns 2 us after the last operation of the stream.
  void synchronise_stream() {
    const TimePoint began = now_;
    const TimePoint end = std::max(now_, gpu_free_) + microseconds(2);
    call(ApiClass::kStreamSync, "cudaStreamSynchronize", end - began);
    records_.push_back(sync(SyncKind::kStream, began, end, corr(last_id_), kStream));
  }

  /// cudaMalloc and cudaFree wait for the device and then take `own` of their own.
  void device_call(ApiClass api_class, std::string_view name, DurationNs own, std::uint16_t flags = 0) {
    const TimePoint end = std::max(now_, gpu_free_) + own;
    call(api_class, name, end - now_, flags);
  }

  /// What `inside` does stands inside a range of this name.
  void range(std::string_view name, const std::function<void()>& inside,
             RangeSource source = RangeSource::kNvtx) {
    const TimePoint began = now_;
    inside();
    records_.push_back(testing::range(names_.intern(name), began, now_, source));
  }
  void range(std::string_view name, DurationNs length, RangeSource source = RangeSource::kNvtx) {
    range(name, [&] { silence(length); }, source);
  }

  void end_of_step() { records_.push_back(mark(now_, steps_++)); }

  /// Runs all that was written down through the engine, in the order and with the ticks of a live run.
  void analyse();
  const Diagnosis& diagnosis() const { return diagnosis_; }
  const DeviceSummary& summary() const { return collector_.devices().begin()->second; }
  const std::vector<IterationLedger>& ledgers() const { return ledgers_; }

 private:
  static constexpr StreamId kStream{7};
  Record run(RecordKind kind, DurationNs runs);
  /// Most who reported such a job ran PyTorch.
  static SessionInfo of_torch() {
    SessionInfo info;
    info.torch = true;
    return info;
  }

  NameTable names_;
  std::vector<Record> records_;
  std::vector<IterationLedger> ledgers_;
  RankCollector collector_{of_torch()};
  Diagnosis diagnosis_;
  TimePoint now_;
  TimePoint gpu_free_;
  std::uint32_t last_id_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace gpudiag::testing
