// SPDX-License-Identifier: Apache-2.0
//
// Kinds, attributes, ids, errors, and what is exported but not modelled.
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "client.hpp"
#include "scripted_core.hpp"

using namespace simgpu;
using namespace simgpu::testing;

namespace {

template <class Value>
Value attribute(CUpti_ActivityAttribute which) {
  Value value{};
  std::size_t size = sizeof value;
  EXPECT_EQ(cuptiActivityGetAttribute(which, &size, &value), CUPTI_SUCCESS);
  EXPECT_EQ(size, sizeof value);
  return value;
}

}  // namespace

TEST(Kinds, EnablingAnswersAsTheHeaderSays) {
  in_own_process("", [] {
    start();
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_COUNT), CUPTI_ERROR_INVALID_KIND);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING),
              CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MODULE), CUPTI_ERROR_NOT_COMPATIBLE);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NVLINK), CUPTI_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OPENACC_DATA), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_SUCCESS);
  });
}

TEST(Kinds, TheCoreIsAskedOnlyForWhatIsEnabled) {
  in_own_process("", [] {
    start();
    EXPECT_EQ(wanted(), kWantResources);
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
    EXPECT_EQ(wanted(), kWantResources | kWantOperations);
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), CUPTI_SUCCESS);
    EXPECT_EQ(wanted(), kWantResources | kWantOperations | kWantSyncs);
    ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), CUPTI_SUCCESS);
    EXPECT_EQ(wanted(), kWantResources);
  });
}

TEST(Kinds, TheCoreIsAskedOnlyForFunctionsThatAreRecordedOrCalledBack) {
  in_own_process("", [] {
    constexpr auto kGetDevice = CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020;
    constexpr auto kLaunchKernel = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    start();
    EXPECT_FALSE(wants_call(ApiDomain::runtime, kLaunchKernel));
    ASSERT_EQ(cuptiActivityEnableRuntimeApi(kLaunchKernel, 1), CUPTI_SUCCESS);
    EXPECT_EQ(wanted(), kWantResources | kWantRuntimeApi);
    EXPECT_TRUE(wants_call(ApiDomain::runtime, kLaunchKernel));
    EXPECT_FALSE(wants_call(ApiDomain::runtime, kGetDevice));
    EXPECT_FALSE(wants_call(ApiDomain::driver, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
    CUpti_SubscriberHandle handle = nullptr;
    ASSERT_EQ(cuptiSubscribe(&handle, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API, kGetDevice), CUPTI_SUCCESS);
    EXPECT_TRUE(wants_call(ApiDomain::runtime, kGetDevice));
    ASSERT_EQ(cuptiUnsubscribe(handle), CUPTI_SUCCESS);
    EXPECT_FALSE(wants_call(ApiDomain::runtime, kGetDevice));
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
    EXPECT_TRUE(wants_call(ApiDomain::runtime, kGetDevice));
  });
}

TEST(Attributes, DefaultsAreThoseOfTheHeader) {
  in_own_process("", [] {
    EXPECT_EQ(attribute<std::size_t>(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE), 3'200'000U);
    EXPECT_EQ(attribute<std::size_t>(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP), 8'388'608U);
    EXPECT_EQ(attribute<std::size_t>(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT), 250U);
    EXPECT_EQ(attribute<std::size_t>(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE), 3U);
    EXPECT_EQ(attribute<std::uint8_t>(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER), 0U);
    EXPECT_EQ(attribute<std::uint8_t>(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER), 1U);
  });
}

TEST(Attributes, WrongOnesAreRefused) {
  in_own_process("", [] {
    std::uint64_t value = 0;
    std::size_t size = 1;
    EXPECT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value),
              CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    size = sizeof value;
    EXPECT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, &size,
                                        &value),
              CUPTI_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityGetAttribute(static_cast<CUpti_ActivityAttribute>(99), &size, &value),
              CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, nullptr, &value),
              CUPTI_ERROR_INVALID_PARAMETER);
    value = 65'536;
    EXPECT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value),
              CUPTI_SUCCESS);
    EXPECT_EQ(attribute<std::size_t>(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE), 65'536U);
  });
}

TEST(Ids, HandlesGiveTheIdsThatRecordsCarry) {
  in_own_process("", [] {
    std::uint32_t id = 0;
    EXPECT_EQ(cuptiGetContextId(reinterpret_cast<CUcontext>(0x1000), &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 1U);
    EXPECT_EQ(cuptiGetContextId(nullptr, &id), CUPTI_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuptiGetDeviceId(nullptr, &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 0U);
    EXPECT_EQ(cuptiGetStreamIdEx(nullptr, nullptr, 0, &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 7U);
    EXPECT_EQ(cuptiGetStreamIdEx(nullptr, nullptr, 1, &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 8U);
    EXPECT_EQ(cuptiGetStreamId(nullptr, reinterpret_cast<CUstream>(0x2000), &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 13U);
    EXPECT_EQ(cuptiGetStreamIdEx(nullptr, reinterpret_cast<CUstream>(0x2001), 0, &id),
              CUPTI_ERROR_INVALID_STREAM);
    EXPECT_EQ(cuptiGetGraphId(reinterpret_cast<CUgraph>(0x3000), &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 5U);
    EXPECT_EQ(cuptiGetGraphId(nullptr, &id), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiGetGraphExecId(reinterpret_cast<CUgraphExec>(0x4000), &id), CUPTI_SUCCESS);
    EXPECT_EQ(id, 6U);
    std::uint64_t node = 0;
    EXPECT_EQ(cuptiGetGraphNodeId(reinterpret_cast<CUgraphNode>(0x5000), &node), CUPTI_SUCCESS);
    EXPECT_EQ(node, 0x500000001U);
  });
}

TEST(Errors, TheLastOneOfAThreadIsKeptUntilItIsTaken) {
  in_own_process("", [] {
    EXPECT_EQ(cuptiGetLastError(), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiGetTimestamp(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
    std::uint32_t version = 0;
    EXPECT_EQ(cuptiGetVersion(&version), CUPTI_SUCCESS);
    EXPECT_EQ(version, static_cast<std::uint32_t>(CUPTI_API_VERSION));
    EXPECT_EQ(cuptiGetLastError(), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiGetLastError(), CUPTI_SUCCESS);
  });
}

TEST(Errors, ResultsHaveTheNamesThatTheRealLibraryGives) {
  in_own_process("", [] {
    const char* text = nullptr;
    EXPECT_EQ(cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text),
              CUPTI_SUCCESS);
    EXPECT_STREQ(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
    EXPECT_EQ(cuptiGetResultString(static_cast<CUptiResult>(47), &text),
              CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_STREQ(text, "<unknown>");
    EXPECT_EQ(cuptiGetErrorMessage(static_cast<CUptiResult>(47), &text), CUPTI_SUCCESS);
    EXPECT_STREQ(text, "<unknown>");
  });
}

TEST(Unmodelled, FunctionsSayThatTheyAreNotSupported) {
  in_own_process("", [] {
    std::uint32_t count = 0;
    EXPECT_EQ(cuptiGetNumEventDomains(&count), CUPTI_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityEnableHWTrace(1), CUPTI_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuptiActivityConfigurePCSampling(nullptr, nullptr),
              CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED);
  });
}

// Strides measured with libcupti of CUDA 13.0.85 by walking a buffer filled with one kind's number.
TEST(Walking, RecordsLieAsFarApartAsInTheRealLibrary) {
  in_own_process("", [] {
    const std::vector<std::pair<int, std::ptrdiff_t>> strides = {
        {1, 96},  {2, 88},  {3, 216}, {4, 40},  {5, 40},  {8, 184}, {9, 32},  {10, 216}, {11, 32},
        {12, 56}, {13, 40}, {17, 56}, {20, 40}, {22, 96}, {36, 56}, {37, 24}, {38, 56},  {39, 24},
        {45, 80}, {48, 40}, {49, 128}, {51, 56}};
    for (const auto& [kind, stride] : strides) {
      std::vector<std::int32_t> buffer(1'024, kind);
      auto* bytes = reinterpret_cast<std::uint8_t*>(buffer.data());
      CUpti_Activity* record = nullptr;
      EXPECT_EQ(cuptiActivityGetNextRecord(bytes, 4'096, &record), CUPTI_SUCCESS);
      EXPECT_EQ(cuptiActivityGetNextRecord(bytes, 4'096, &record), CUPTI_SUCCESS);
      EXPECT_EQ(reinterpret_cast<std::uint8_t*>(record) - bytes, stride) << kind;
      record = nullptr;
      EXPECT_EQ(cuptiActivityGetNextRecord(bytes, static_cast<std::size_t>(stride) - 1, &record),
                CUPTI_ERROR_MAX_LIMIT_REACHED);
    }
  });
}

TEST(Walking, ARecordOfNoKindEndsTheWalk) {
  in_own_process("", [] {
    std::vector<std::uint8_t> zeros(64, 0);
    CUpti_Activity* record = nullptr;
    EXPECT_EQ(cuptiActivityGetNextRecord(zeros.data(), zeros.size(), &record),
              CUPTI_ERROR_INVALID_KIND);
    EXPECT_EQ(cuptiActivityGetNextRecord(nullptr, 8, &record), CUPTI_ERROR_INVALID_PARAMETER);
  });
}

TEST(Finalize, WhoeverComesAfterItFindsTheDefaults) {
  in_own_process("", [] {
    start();
    ASSERT_EQ(cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t { return 7; }), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
    std::uint8_t per_thread = 0;
    std::size_t size = sizeof per_thread;
    ASSERT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &per_thread),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
    std::uint64_t now = 0;
    EXPECT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    EXPECT_GT(now, 1'600'000'000'000'000'000U);
    CUpti_ActivityThreadIdType type = CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
    EXPECT_EQ(cuptiGetThreadIdType(&type), CUPTI_SUCCESS);
    EXPECT_EQ(type, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
    EXPECT_EQ(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &per_thread),
              CUPTI_SUCCESS);
    EXPECT_EQ(per_thread, 1);
  });
}

TEST(Finalize, DetachesAndLosesWhatWasNotFlushed) {
  in_own_process("", [] {
    start();
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    OperationRecord op = kernel("k", 1);
    queue(op);
    EXPECT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
    finish(op, 10, 20);
    EXPECT_EQ(wanted(), kWantResources);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    EXPECT_EQ(kernels().size(), 0U);
    start();  // and a client may come again
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    queue(op);
    finish(op, 10, 20);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 1U);
  });
}
