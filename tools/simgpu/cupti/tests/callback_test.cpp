// SPDX-License-Identifier: Apache-2.0
//
// The callback API: subscribers, sites, what the client is told.
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client.hpp"
#include "scripted_core.hpp"

using namespace simgpu;
using namespace simgpu::testing;
using ::testing::ElementsAre;

namespace {

struct Seen {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId cbid;
  CUpti_CallbackData data;
  std::uint64_t correlation_data;
};
std::vector<Seen> g_seen;

void CUPTIAPI see(void* userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                  const void* data) {
  Seen seen{domain, cbid, {}, 0};
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    seen.data = *static_cast<const CUpti_CallbackData*>(data);
    seen.correlation_data = *seen.data.correlationData;
    *seen.data.correlationData = 4711;
  }
  EXPECT_EQ(userdata, &g_seen);
  g_seen.push_back(seen);
}

CUpti_SubscriberHandle subscribe() {
  CUpti_SubscriberHandle handle = nullptr;
  EXPECT_EQ(cuptiSubscribe(&handle, see, &g_seen), CUPTI_SUCCESS);
  return handle;
}

constexpr Call kMalloc{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
                       "cudaMalloc"};
constexpr Call kFree{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, "cudaFree"};

}  // namespace

TEST(Subscribers, ASecondOneIsRefusedAndToldWhoHoldsThePlace) {
  in_own_process("", [] {
    CUpti_SubscriberHandle first = nullptr;
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "first tool";
    ASSERT_EQ(cuptiSubscribe_v2(&first, see, nullptr, &params), CUPTI_SUCCESS);
    CUpti_SubscriberHandle second = nullptr;
    EXPECT_EQ(cuptiSubscribe(&second, see, nullptr),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = {};
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = sizeof holder;
    EXPECT_EQ(cuptiSubscribe_v2(&second, see, nullptr, &params),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_STREQ(holder, "CUPTI for first tool");
    EXPECT_EQ(cuptiUnsubscribe(first), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiUnsubscribe(first), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiSubscribe(&second, see, nullptr), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiSubscribe_v2(&first, see, nullptr, &params),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_STREQ(holder, "CUPTI for <not provided>");
  });
}

TEST(Subscribers, TheActivityApiWorksWithoutOne) {
  in_own_process("", [] {
    start();
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
    run_call(kMalloc);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(client().kinds().size(), 1U);
  });
}

TEST(Callbacks, ACallIsSeenAtEntryAndExitWithOneCorrelationIdAndItsParameters) {
  in_own_process("", [] {
    const CUpti_SubscriberHandle handle = subscribe();
    ASSERT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_SUCCESS);
    const cudaMalloc_v3020_params params{nullptr, 512};
    Call call = kMalloc;
    call.params = &params;
    call.result = 2;
    const std::uint32_t id = run_call(call, [](std::uint32_t) {
      ASSERT_EQ(g_seen.size(), 1U);
      EXPECT_EQ(g_seen[0].data.functionReturnValue, nullptr);
    });
    ASSERT_EQ(g_seen.size(), 2U);
    EXPECT_EQ(g_seen[0].data.callbackSite, CUPTI_API_ENTER);
    EXPECT_EQ(g_seen[1].data.callbackSite, CUPTI_API_EXIT);
    EXPECT_NE(g_seen[1].data.functionReturnValue, nullptr);
    for (const Seen& seen : g_seen) {
      EXPECT_EQ(seen.domain, CUPTI_CB_DOMAIN_RUNTIME_API);
      EXPECT_EQ(seen.cbid, 20U);
      EXPECT_STREQ(seen.data.functionName, "cudaMalloc");
      EXPECT_EQ(seen.data.correlationId, id);
      EXPECT_EQ(static_cast<const cudaMalloc_v3020_params*>(seen.data.functionParams)->size, 512U);
      EXPECT_EQ(seen.data.contextUid, 1U);
    }
    EXPECT_EQ(g_seen[0].correlation_data, 0U);
    EXPECT_EQ(g_seen[1].correlation_data, 4'711U);
  });
}

TEST(Callbacks, OnlyLaunchesNameASymbol) {
  in_own_process("", [] {
    const CUpti_SubscriberHandle handle = subscribe();
    ASSERT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_SUCCESS);
    Call launch{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                "cudaLaunchKernel"};
    launch.symbol = "axpy";
    run_call(launch);
    run_call(kMalloc);
    ASSERT_EQ(g_seen.size(), 4U);
    EXPECT_STREQ(g_seen[0].data.symbolName, "axpy");
    EXPECT_NE(g_seen[2].data.symbolName, nullptr);  // and not to be read
  });
}

TEST(Callbacks, SingleFunctionsCanBeEnabledAndAskedAbout) {
  in_own_process("", [] {
    const CUpti_SubscriberHandle handle = subscribe();
    const auto state = [&](CUpti_CallbackId cbid) {
      std::uint32_t on = 7;
      EXPECT_EQ(cuptiGetCallbackState(&on, handle, CUPTI_CB_DOMAIN_RUNTIME_API, cbid),
                CUPTI_SUCCESS);
      return on;
    };
    ASSERT_EQ(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API, kMalloc.cbid),
              CUPTI_SUCCESS);
    EXPECT_EQ(state(kMalloc.cbid), 1U);
    EXPECT_EQ(state(kFree.cbid), 0U);
    run_call(kMalloc);
    run_call(kFree);
    EXPECT_EQ(g_seen.size(), 2U);
    EXPECT_EQ(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API, 99'999),
              CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_SIZE), CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(cuptiEnableDomain(1, nullptr, CUPTI_CB_DOMAIN_RUNTIME_API),
              CUPTI_ERROR_INVALID_PARAMETER);
  });
}

TEST(Callbacks, ACallbackDisabledInsideACallHasNoExitAndOneEnabledInsideHasNoEntry) {
  in_own_process("", [] {
    const CUpti_SubscriberHandle handle = subscribe();
    const auto enable = [&](bool on) {
      ASSERT_EQ(cuptiEnableCallback(on, handle, CUPTI_CB_DOMAIN_RUNTIME_API, kMalloc.cbid),
                CUPTI_SUCCESS);
    };
    enable(true);
    run_call(kMalloc, [&](std::uint32_t) { enable(false); });
    ASSERT_EQ(g_seen.size(), 1U);
    EXPECT_EQ(g_seen[0].data.callbackSite, CUPTI_API_ENTER);
    run_call(kMalloc, [&](std::uint32_t) { enable(true); });
    ASSERT_EQ(g_seen.size(), 2U);
    EXPECT_EQ(g_seen[1].data.callbackSite, CUPTI_API_EXIT);
  });
}

TEST(Callbacks, ACallMadeInsideACallbackIsNotReported) {
  in_own_process("", [] {
    static int calls = 0;
    CUpti_SubscriberHandle handle = nullptr;
    ASSERT_EQ(cuptiSubscribe(
                  &handle,
                  [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {
                    ++calls;
                    run_call(kFree);
                  },
                  nullptr),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_SUCCESS);
    run_call(kMalloc);
    EXPECT_EQ(calls, 2);
  });
}

TEST(Callbacks, UnsubscribingEndsThemAndTheCoreIsAskedForNoMore) {
  in_own_process("", [] {
    const CUpti_SubscriberHandle handle = subscribe();
    ASSERT_EQ(cuptiEnableAllDomains(1, handle), CUPTI_SUCCESS);
    EXPECT_EQ(wanted(), kWantRuntimeApi | kWantDriverApi | kWantSyncs | kWantResources | kWantSymbols);
    ASSERT_EQ(cuptiUnsubscribe(handle), CUPTI_SUCCESS);
    run_call(kMalloc);
    EXPECT_EQ(g_seen.size(), 0U);
    EXPECT_EQ(wanted(), kWantResources);
  });
}

TEST(Callbacks, SynchronisationAndResourcesHaveDomainsOfTheirOwn) {
  in_own_process("", [] {
    static std::vector<std::pair<int, CUpti_CallbackId>> seen;
    static std::uint32_t module_id = 0;
    CUpti_SubscriberHandle handle = nullptr;
    ASSERT_EQ(cuptiSubscribe(
                  &handle,
                  [](void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
                    seen.emplace_back(domain, cbid);
                    if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
                      const auto* resource = static_cast<const CUpti_ResourceData*>(data);
                      module_id = static_cast<const CUpti_ModuleResourceData*>(
                                      resource->resourceDescriptor)
                                      ->moduleId;
                    }
                  },
                  nullptr),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_SYNCHRONIZE), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_SUCCESS);
    SyncRecord sync{};
    sync.kind = SyncKind::stream_synchronize;
    synchronised(sync);
    sync.kind = SyncKind::event_synchronize;  // has no callback point
    synchronised(sync);
    ResourceRecord module{};
    module.event = ResourceEvent::module_loaded;
    module.module_id = 3;
    resource_changed(module);
    EXPECT_THAT(seen, ElementsAre(std::pair(int{CUPTI_CB_DOMAIN_SYNCHRONIZE},
                                            CUpti_CallbackId{CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED}),
                                  std::pair(int{CUPTI_CB_DOMAIN_RESOURCE},
                                            CUpti_CallbackId{CUPTI_CBID_RESOURCE_MODULE_LOADED})));
    EXPECT_EQ(module_id, 3U);
  });
}

TEST(Callbacks, NamesAreThoseOfTheHeadersWithTheirVersions) {
  in_own_process("", [] {
    const char* name = nullptr;
    EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 211, &name), CUPTI_SUCCESS);
    EXPECT_STREQ(name, "cudaLaunchKernel_v7000");
    EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, 307, &name), CUPTI_SUCCESS);
    EXPECT_STREQ(name, "cuLaunchKernel");
    EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 0, &name), CUPTI_SUCCESS);
    EXPECT_STREQ(name, "INVALID");
    EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 1'000, &name),
              CUPTI_ERROR_INVALID_PARAMETER);
    EXPECT_EQ(name, nullptr);
    EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, 1, &name),
              CUPTI_ERROR_INVALID_PARAMETER);
  });
}
