// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/selection.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace gpudiag {
namespace {

std::set<int> g_kinds;
std::map<std::uint32_t, bool> g_runtime;
std::map<std::uint32_t, bool> g_driver;
int g_refused = 0;

// Three functions of each API: one that nobody needs, a launch, a wait.
CUptiResult CUPTIAPI callback_name(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  static constexpr const char* kRuntime[] = {"cudaGetDevice_v3020", "cudaLaunchKernel_v7000",
                                             "cudaDeviceSynchronize_v3020"};
  static constexpr const char* kDriver[] = {"cuCtxGetCurrent", "cuLaunchKernel", "cuCtxSynchronize"};
  if (id < 1 || id > 3) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? kRuntime[id - 1] : kDriver[id - 1];
  return CUPTI_SUCCESS;
}

CuptiTable table() {
  CuptiTable cupti;
  cupti.callback_name = callback_name;
  cupti.enable = [](CUpti_ActivityKind kind) {
    if (kind == g_refused) return CUPTI_ERROR_NOT_COMPATIBLE;
    g_kinds.insert(kind);
    return CUPTI_SUCCESS;
  };
  cupti.disable = [](CUpti_ActivityKind kind) { return g_kinds.erase(kind), CUPTI_SUCCESS; };
  cupti.enable_runtime_api = [](CUpti_CallbackId id, std::uint8_t on) { return g_runtime[id] = on != 0, CUPTI_SUCCESS; };
  cupti.enable_driver_api = [](CUpti_CallbackId id, std::uint8_t on) { return g_driver[id] = on != 0, CUPTI_SUCCESS; };
  return cupti;
}

class Selection : public ::testing::Test {
 protected:
  Selection() {
    g_kinds.clear();
    g_runtime.clear();
    g_driver.clear();
    g_refused = 0;
  }
  void enable_all(bool markers, bool subscribed) {
    EXPECT_FALSE(selection_.enable_kinds(markers).kernels);
    selection_.find_functions(decoder_);
    EXPECT_TRUE(selection_.enable_functions(CUPTI_CB_DOMAIN_RUNTIME_API, subscribed));
    EXPECT_TRUE(selection_.enable_functions(CUPTI_CB_DOMAIN_DRIVER_API, subscribed));
  }

  CuptiTable cupti_ = table();
  NameTable names_;
  ActivityDecoder decoder_{cupti_, names_};
  ActivitySelection selection_{cupti_};
};

TEST_F(Selection, OnlyFunctionsThatMatterAreRecorded) {
  enable_all(false, false);
  EXPECT_EQ(g_runtime, (std::map<std::uint32_t, bool>{{2, true}, {3, true}}));
  EXPECT_EQ(g_driver, (std::map<std::uint32_t, bool>{{2, true}, {3, true}}));
  EXPECT_FALSE(g_kinds.contains(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_FALSE(g_kinds.contains(CUPTI_ACTIVITY_KIND_KERNEL)) << "it would serialise kernels";
  EXPECT_FALSE(g_kinds.contains(CUPTI_ACTIVITY_KIND_MARKER));
}

TEST_F(Selection, WhatASubscriberSeesIsNotRecordedAsLongAsThereIsOne) {
  enable_all(false, true);
  EXPECT_FALSE(g_runtime[3]);
  selection_.without_subscriber();
  EXPECT_TRUE(g_runtime[3]);
}

TEST_F(Selection, MarkersAreRecordedWhereAskedForAndCanBeDroppedAlone) {
  enable_all(true, false);
  EXPECT_TRUE(g_kinds.contains(CUPTI_ACTIVITY_KIND_MARKER));
  const auto others = g_kinds.size() - 1;
  selection_.disable_markers();
  EXPECT_FALSE(g_kinds.contains(CUPTI_ACTIVITY_KIND_MARKER));
  EXPECT_EQ(g_kinds.size(), others);
}

TEST_F(Selection, AfterwardsNothingOfOursIsEnabledAndNothingElseTouched) {
  g_kinds.insert(CUPTI_ACTIVITY_KIND_MEMORY2);  // the other one's
  enable_all(true, false);
  selection_.disable_all();
  EXPECT_EQ(g_kinds, (std::set<int>{CUPTI_ACTIVITY_KIND_MEMORY2}));
  EXPECT_EQ(g_runtime, (std::map<std::uint32_t, bool>{{2, false}, {3, false}}));
  EXPECT_EQ(g_driver, (std::map<std::uint32_t, bool>{{2, false}, {3, false}}));
}

TEST_F(Selection, WithoutKernelsThereIsNoLedgerAndWithoutTheRestThereIs) {
  g_refused = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  EXPECT_TRUE(selection_.enable_kinds(false).kernels);
  g_refused = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  const auto refused = selection_.enable_kinds(false);
  EXPECT_FALSE(refused.kernels);
  EXPECT_TRUE(refused.what.starts_with("CUDA_EVENT: ")) << refused.what;
}

TEST_F(Selection, AnOldCuptiRecordsAllCallsOrNone) {
  cupti_.enable_runtime_api = nullptr;
  EXPECT_TRUE(selection_.enable_functions(CUPTI_CB_DOMAIN_RUNTIME_API, false));
  EXPECT_TRUE(g_kinds.contains(CUPTI_ACTIVITY_KIND_RUNTIME));
  selection_.disable_all();
  EXPECT_TRUE(g_kinds.empty());
}

}  // namespace
}  // namespace gpudiag
