// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/callbacks.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sources/host/thread_log.hpp"

namespace gpudiag {
namespace {

std::vector<HostMessage> drain() {
  std::vector<HostMessage> seen;
  ThreadLogs::drain([&](const HostMessage& message, std::string_view) {
    if (message.kind == RecordKind::kApiCall) seen.push_back(message);
  });
  return seen;
}

/// A call as CUPTI shows it, with what must not be read set to rubbish.
struct Call {
  std::uint64_t correlation_data = 0;
  std::uint32_t result = 0;
  CUpti_CallbackData data{};

  explicit Call(std::uint32_t correlation) {
    data.correlationData = &correlation_data;
    data.functionReturnValue = &result;
    data.correlationId = correlation;
    data.symbolName = reinterpret_cast<const char*>(std::uintptr_t{0xdead'beef});
    data.functionParams = reinterpret_cast<const void*>(std::uintptr_t{0xdead'beef});
  }
  void at(CUpti_ApiCallbackSite site, CUpti_CallbackId id) {
    data.callbackSite = site;
    on_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, id, &data);
  }
};

class CuptiCallbacks : public ::testing::Test {
 protected:
  void SetUp() override {
    set_host_log(true);
    drain();
  }
  void TearDown() override { set_host_log(false); }
};

TEST_F(CuptiCallbacks, EnterAndExitAreOneCallWithItsCorrelation) {
  Call call{77};
  call.at(CUPTI_API_ENTER, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
  call.at(CUPTI_API_EXIT, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].correlation, 77u);
  EXPECT_EQ(seen[0].callback, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020 | kRuntimeCallbackBit);
  EXPECT_LE(seen[0].start, seen[0].end);
  EXPECT_EQ(seen[0].flags, 0);
}

TEST_F(CuptiCallbacks, AnExitWithoutAnEnterIsNothing) {
  Call call{1};
  call.at(CUPTI_API_EXIT, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  EXPECT_TRUE(drain().empty());
}

TEST_F(CuptiCallbacks, AnEnterWithoutAnExitIsNothing) {
  Call call{1};
  call.at(CUPTI_API_ENTER, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  EXPECT_TRUE(drain().empty());
}

TEST_F(CuptiCallbacks, AFailedCallIsMarkedAndNotReadyIsNoFailure) {
  Call failed{1};
  failed.at(CUPTI_API_ENTER, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  failed.result = 2;  // out of memory
  failed.at(CUPTI_API_EXIT, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  Call not_ready{2};
  not_ready.at(CUPTI_API_ENTER, CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020);
  not_ready.result = 600;
  not_ready.at(CUPTI_API_EXIT, CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].flags, record_flag::kFailed);
  EXPECT_EQ(seen[1].flags, 0);
}

TEST_F(CuptiCallbacks, CallbacksWithoutDataAreNothing) {
  on_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, 1, nullptr);
  CUpti_CallbackData data{};
  on_callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, 1, &data);
  on_callback(nullptr, CUPTI_CB_DOMAIN_NVTX, 1, &data);
  EXPECT_TRUE(drain().empty());
}

TEST_F(CuptiCallbacks, UnloadedModulesAreCounted) {
  const std::uint64_t before = CallbackSubscriber::modules_unloaded();
  CUpti_ResourceData data{};
  on_callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, &data);
  on_callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &data);
  EXPECT_EQ(CallbackSubscriber::modules_unloaded(), before + 1);
}

CUptiResult g_answer = CUPTI_SUCCESS;
int g_enabled = 0;
int g_unsubscribed = 0;

CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) { return g_answer; }
CUptiResult CUPTIAPI subscribe_v2(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, CUpti_SubscriberParams* params) {
  if (g_answer != CUPTI_SUCCESS)
    std::strncpy(params->oldSubscriberName, "CUPTI for Kineto", params->oldSubscriberSize - 1);
  return g_answer;
}
CUptiResult CUPTIAPI unsubscribe(CUpti_SubscriberHandle) { return ++g_unsubscribed, CUPTI_SUCCESS; }
CUptiResult CUPTIAPI enable_callback(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
  return ++g_enabled, CUPTI_SUCCESS;
}

CuptiTable fake_table() {
  CuptiTable table;
  table.subscribe = subscribe;
  table.unsubscribe = unsubscribe;
  table.enable_callback = enable_callback;
  g_enabled = g_unsubscribed = 0;
  return table;
}

TEST(CuptiSubscriber, EnablesTheFunctionsItIsGivenAndGivesItselfBackOnce) {
  const CuptiTable table = fake_table();
  g_answer = CUPTI_SUCCESS;
  CallbackSubscriber subscriber;
  std::string why_not;
  EXPECT_EQ(subscriber.take(table, {{CUPTI_CB_DOMAIN_RUNTIME_API, 1}, {CUPTI_CB_DOMAIN_RUNTIME_API, 2}}, why_not),
            CUPTI_SUCCESS);
  EXPECT_EQ(g_enabled, 3);  // and modules
  subscriber.release(table);
  subscriber.release(table);
  EXPECT_EQ(g_unsubscribed, 1);
}

TEST(CuptiSubscriber, BothWaysOfSayingTakenAreTakenAlike) {
  const CuptiTable table = fake_table();
  for (const CUptiResult refusal : {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CUPTI_ERROR_MAX_LIMIT_REACHED}) {
    g_answer = refusal;
    CallbackSubscriber subscriber;
    std::string why_not;
    EXPECT_EQ(subscriber.take(table, {}, why_not), refusal);
    EXPECT_EQ(why_not, std::to_string(refusal) + ", another profiler holds CUPTI's only subscriber");
    EXPECT_FALSE(subscriber.taken());
    subscriber.release(table);
    EXPECT_EQ(g_unsubscribed, 0);
  }
}

TEST(CuptiSubscriber, NamesTheHolderWhereCuptiTells) {
  CuptiTable table = fake_table();
  table.subscribe_v2 = subscribe_v2;
  g_answer = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  CallbackSubscriber subscriber;
  std::string why_not;
  subscriber.take(table, {}, why_not);
  EXPECT_EQ(why_not, "39, CUPTI for Kineto holds CUPTI's only subscriber");
}

TEST(CuptiSubscriber, ACuptiWithoutCallbacksIsARefusal) {
  CallbackSubscriber subscriber;
  std::string why_not;
  EXPECT_NE(subscriber.take(CuptiTable{}, {}, why_not), CUPTI_SUCCESS);
  EXPECT_EQ(why_not, "this CUPTI has no callback API");
}

}  // namespace
}  // namespace gpudiag
