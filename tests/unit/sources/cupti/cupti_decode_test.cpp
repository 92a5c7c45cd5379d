// SPDX-License-Identifier: Apache-2.0
// Genuine CUpti_Activity structs, filled by hand, through the decoder.
#include "sources/cupti/decode.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace gpudiag {
namespace {

/// Walks the records of a buffer as CUPTI does, by the size of each kind.
CUptiResult CUPTIAPI next_record(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* at = buffer;
  const auto size_of = [](const std::uint8_t* place) -> std::size_t {
    switch (reinterpret_cast<const CUpti_Activity*>(place)->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
      case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
      case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
      case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
      case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return sizeof(CUpti_ActivityCudaEvent2);
      case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(CUpti_ActivityOverhead3);
      default: return sizeof(CUpti_ActivityAPI);
    }
  };
  if (*record != nullptr) {
    at = reinterpret_cast<std::uint8_t*>(*record);
    at += size_of(at);
  }
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI callback_name(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
    *name = "cudaLaunchKernel_v7000";
  else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020)
    *name = "cudaEventRecord_v3020";
  else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020)
    *name = "cudaEventSynchronize_v3020";
  else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
    *name = "cuLaunchKernel";
  else return CUPTI_ERROR_INVALID_PARAMETER;
  return CUPTI_SUCCESS;
}

class Kept final : public RecordSink {
 public:
  void add(const Record& record) override { records.push_back(record); }
  std::vector<Record> records;
};

constexpr std::uint64_t kEpoch = 1'700'000'000'000'000'000;

class CuptiDecode : public ::testing::Test {
 protected:
  CuptiDecode() {
    cupti_.next_record = next_record;
    cupti_.callback_name = callback_name;
    cupti_.api_version = 130001;
    clock_.add({static_cast<std::int64_t>(kEpoch), {0}, {0}});
  }

  template <typename Struct>
  Struct blank(CUpti_ActivityKind kind) {
    Struct record;
    std::memset(static_cast<void*>(&record), 0, sizeof record);
    record.kind = kind;
    return record;
  }
  template <typename Struct>
  void append(const Struct& record) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
    buffer_.insert(buffer_.end(), bytes, bytes + sizeof record);
  }
  void append_call(std::uint32_t callback, std::uint32_t correlation, std::uint64_t start, std::uint64_t end,
                   std::uint32_t result = 0, CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_RUNTIME) {
    auto call = blank<CUpti_ActivityAPI>(kind);
    call.cbid = callback;
    call.correlationId = correlation;
    call.threadId = 4711;
    call.start = kEpoch + start;
    call.end = kEpoch + end;
    call.returnValue = result;
    append(call);
  }
  const std::vector<Record>& decode(bool finish = true) {
    decoder_.decode({buffer_.data(), buffer_.size()}, clock_, kept_);
    buffer_.clear();
    if (finish) decoder_.finish_round(kept_);
    return kept_.records;
  }

  CuptiTable cupti_;
  NameTable names_;
  ClockMap clock_;
  ActivityDecoder decoder_{cupti_, names_};
  std::vector<std::uint8_t> buffer_;
  Kept kept_;
};

TEST_F(CuptiDecode, AKernelKeepsWhereItRanAndWhoLaunchedIt) {
  auto kernel = blank<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  kernel.start = kEpoch + 1000;
  kernel.end = kEpoch + 3000;
  kernel.deviceId = 1;
  kernel.contextId = 2;
  kernel.streamId = 7;
  kernel.correlationId = 99;
  kernel.graphId = 5;
  kernel.name = "_Z6squarePfi";
  append(kernel);
  const auto& records = decode();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].kind, RecordKind::kKernel);
  EXPECT_EQ(records[0].start.ns, 1000);
  EXPECT_EQ(records[0].end.ns, 3000);
  EXPECT_EQ(records[0].device, DeviceId{1});
  EXPECT_EQ(records[0].context, ContextId{2});
  EXPECT_EQ(records[0].stream, StreamId{7});
  EXPECT_EQ(records[0].correlation, CorrelationId{99});
  EXPECT_EQ(records[0].graph, GraphId{5});
  EXPECT_EQ(names_.text(records[0].name), "square(float*, int)");
  EXPECT_EQ(records[0].flags, 0);
}

TEST_F(CuptiDecode, KernelsOfAnotherShapeHaveAnotherHash) {
  auto kernel = blank<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  kernel.gridX = 4;
  append(kernel);
  append(kernel);
  kernel.gridX = 5;
  append(kernel);
  const auto& records = decode();
  EXPECT_EQ(records[0].value, records[1].value);
  EXPECT_NE(records[0].value, records[2].value);
}

TEST_F(CuptiDecode, ANamePointerThatGotAnotherTextGivesTheNewName) {
  char text[] = "first_kernel";
  auto kernel = blank<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  kernel.name = text;
  append(kernel);
  decode();
  std::strcpy(text, "other_kernel");
  append(kernel);
  const auto& records = decode();
  EXPECT_EQ(names_.text(records[0].name), "first_kernel");
  EXPECT_EQ(names_.text(records[1].name), "other_kernel");
}

TEST_F(CuptiDecode, ZeroTimesAreUntimedAndAMissingEndIsIncomplete) {
  auto kernel = blank<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  append(kernel);
  kernel.start = kEpoch + 10;
  append(kernel);
  const auto& records = decode();
  EXPECT_EQ(records[0].flags, record_flag::kUntimed);
  EXPECT_EQ(records[1].flags, record_flag::kIncomplete);
  EXPECT_EQ(records[1].start.ns, 10);
}

TEST_F(CuptiDecode, CopiesKeepDirectionBytesAndPageability) {
  auto copy = blank<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  copy.bytes = 4;
  copy.start = kEpoch + 1;
  copy.end = kEpoch + 2;
  append(copy);
  auto peer = blank<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  peer.bytes = 64;
  peer.start = kEpoch + 3;
  peer.end = kEpoch + 4;
  append(peer);
  const auto& records = decode();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].copy, CopyKind::kDeviceToHost);
  EXPECT_EQ(records[0].value, 4u);
  EXPECT_EQ(records[0].flags, record_flag::kPageable | record_flag::kAsync);
  EXPECT_EQ(records[1].copy, CopyKind::kPeer);
  EXPECT_EQ(records[1].kind, RecordKind::kMemcpy);
}

TEST_F(CuptiDecode, CallsHaveNameClassThreadAndFailure) {
  append_call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1, 100, 200);
  append_call(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 2, 300, 400, 701);
  append_call(9999, 3, 500, 600);
  const auto& records = decode();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(names_.text(records[0].name), "cudaLaunchKernel");
  EXPECT_EQ(records[0].api, ApiClass::kLaunch);
  EXPECT_EQ(records[0].thread, ThreadId{4711});
  EXPECT_EQ(records[0].flags, 0);
  EXPECT_EQ(records[1].flags, record_flag::kFailed);
  EXPECT_EQ(records[2].api, ApiClass::kOther);
  EXPECT_EQ(records[2].correlation, CorrelationId{3});
  EXPECT_EQ(decoder_.counts().launches, 1u);
}

TEST_F(CuptiDecode, DriverCallsAreMarkedAsSuch) {
  append_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1, 100, 200, 0, CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_EQ(decode()[0].flags, record_flag::kDriverApi);
}

TEST_F(CuptiDecode, AnEventRecordTakesTimeAndThreadFromItsCall) {
  auto event = blank<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  event.correlationId = 8;
  event.streamId = 13;
  event.eventId = 3;
  event.cudaEventSyncId = 501;
  append(event);
  append_call(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, 8, 100, 150);
  const auto& records = decode();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].kind, RecordKind::kEventRecord);
  EXPECT_EQ(records[1].start.ns, 100);
  EXPECT_EQ(records[1].thread, ThreadId{4711});
  EXPECT_EQ(records[1].stream, StreamId{13});
  EXPECT_EQ(records[1].value, 3u);
}

TEST_F(CuptiDecode, AWaitNamesTheRecordItWaitedForEvenWhenThatComesLater) {
  auto sync = blank<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  sync.correlationId = 9;
  sync.cudaEventId = 3;
  sync.cudaEventSyncId = 501;
  sync.streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  sync.start = kEpoch + 300;
  sync.end = kEpoch + 900;
  append(sync);
  append_call(CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020, 9, 290, 910);
  ASSERT_EQ(decode().size(), 1u);  // the call; the wait waits for the event's record
  auto event = blank<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  event.correlationId = 8;
  event.cudaEventSyncId = 501;
  append(event);
  append_call(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, 8, 100, 150);
  const auto& records = decode();
  ASSERT_EQ(records.size(), 4u);
  const Record& wait = records[2];
  EXPECT_EQ(wait.kind, RecordKind::kSync);
  EXPECT_EQ(wait.sync, SyncKind::kEvent);
  EXPECT_EQ(wait.stream, kNoStream);
  EXPECT_EQ(wait.value, 3u);
  EXPECT_EQ(wait.value2, 8u);
  EXPECT_EQ(wait.thread, ThreadId{4711});
}

TEST_F(CuptiDecode, AWaitWhoseRecordNeverComesIsPassedOnWithoutIt) {
  auto sync = blank<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  sync.correlationId = 9;
  sync.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  sync.cudaEventSyncId = 77;
  sync.streamId = 7;
  sync.start = kEpoch + 300;
  sync.end = kEpoch + 900;
  append(sync);
  EXPECT_TRUE(decode().empty());
  const auto& records = decode();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].value, 0u);
  EXPECT_EQ(records[0].value2, 0u);
}

TEST_F(CuptiDecode, SyncIdsOfAnOlderCuptiAreNotRead) {
  cupti_.api_version = 24;
  auto sync = blank<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  sync.correlationId = 9;
  sync.cudaEventSyncId = 0xdeadbeef;  // beyond that version's struct
  sync.start = kEpoch + 300;
  sync.end = kEpoch + 900;
  append(sync);
  append_call(CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020, 9, 290, 910);
  decode();
  EXPECT_EQ(decode().size(), 2u);  // the wait names no device that is known, and is passed on a round later
}

TEST_F(CuptiDecode, OnlyCuptisOwnOverheadIsOurs) {
  auto overhead = blank<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId.pt.threadId = 12;
  overhead.start = kEpoch + 1;
  overhead.end = kEpoch + 5;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  append(overhead);
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING;
  append(overhead);
  const auto& records = decode();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].kind, RecordKind::kOwn);
  EXPECT_EQ(records[0].thread, ThreadId{12});
}

TEST(CuptiNames, ApiNamesLoseVersionsAndStreamSuffixes) {
  EXPECT_EQ(plain_api_name("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(plain_api_name("cuMemcpyHtoD_v2"), "cuMemcpyHtoD");
  EXPECT_EQ(plain_api_name("__cudaLaunchKernel_v13000"), "__cudaLaunchKernel");
  EXPECT_EQ(plain_api_name("cuStreamSynchronize"), "cuStreamSynchronize");
}

}  // namespace
}  // namespace gpudiag
