// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's callback API.
#include <fmt/format.h>

#include "checks.hpp"

namespace gpudiag::device {
namespace {

struct Seen {
  std::vector<std::string> entered;
  bool calls_cuda = false;
};
Seen g_seen;

void CUPTIAPI note(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_ENTER) return;
  g_seen.entered.emplace_back(call.functionName);
  int device = -1;
  if (g_seen.calls_cuda && g_seen.entered.size() < 10) cudaGetDevice(&device);
}

TEST_F(Callbacks, ASecondSubscriberIsRefused) {
  row(43);
  CUpti_SubscriberHandle first{}, second{};
  ASSERT_CUPTI(cuptiSubscribe(&first, note, nullptr));
  const CUptiResult result = cuptiSubscribe(&second, note, nullptr);
  measured(fmt::format("error {}", static_cast<int>(result)));
  EXPECT_EQ(result, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  ASSERT_CUPTI(cuptiUnsubscribe(first));
  EXPECT_EQ(cuptiSubscribe(&second, note, nullptr), CUPTI_SUCCESS);
}

TEST_F(Callbacks, FunctionNamesHaveNoVersionSuffixAndCallbackNamesHave) {
  row(18);
  CUpti_SubscriberHandle subscriber{};
  ASSERT_CUPTI(cuptiSubscribe(&subscriber, note, nullptr));
  ASSERT_CUPTI(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  ASSERT_CUPTI(cuptiUnsubscribe(subscriber));
  EXPECT_NE(std::ranges::find(g_seen.entered, "cudaLaunchKernel"), g_seen.entered.end());
  const char* name = nullptr;
  ASSERT_CUPTI(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name));
  EXPECT_STREQ(name, "cudaLaunchKernel_v7000");
}

TEST_F(Callbacks, CallsFromWithinACallbackAreNotReported) {
  row(17);
  g_seen.calls_cuda = true;
  CUpti_SubscriberHandle subscriber{};
  ASSERT_CUPTI(cuptiSubscribe(&subscriber, note, nullptr));
  ASSERT_CUPTI(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
  ASSERT_CUPTI(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020));
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  ASSERT_CUPTI(cuptiUnsubscribe(subscriber));
  EXPECT_EQ(g_seen.entered, (std::vector<std::string>{"cudaLaunchKernel"}));
}

TEST_F(Callbacks, KindsWithoutRecordsHereCanBeEnabled) {
  row(19);
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_OPENACC_DATA, CUPTI_ACTIVITY_KIND_OPENMP,
                                        CUPTI_ACTIVITY_KIND_JIT})
    EXPECT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS) << kind;
}

}  // namespace
}  // namespace gpudiag::device
