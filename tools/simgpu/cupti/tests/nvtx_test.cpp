// SPDX-License-Identifier: Apache-2.0
//
// NVTX through the injection entry point, as a program's own NVTX header finds it.
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "client.hpp"
#include "scripted_core.hpp"

using namespace simgpu;
using namespace simgpu::testing;
using ::testing::ElementsAre;

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

namespace {

// NVTX calls the symbol of this name by itself when it is set, before it looks at the environment.
void start_nvtx() {
  start();
  for (const auto kind : {CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_MARKER_DATA,
                          CUPTI_ACTIVITY_KIND_NAME}) {
    ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);
  }
  InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;
}

std::vector<CUpti_ActivityMarker2> markers() {
  EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  return client().of<CUpti_ActivityMarker2>(CUPTI_ACTIVITY_KIND_MARKER);
}

nvtxEventAttributes_t attributes(const char* message) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  return event;
}

}  // namespace

TEST(Nvtx, ANestedRangeIsAPairOfMarkersWithOneId) {
  in_own_process("", [] {
    start_nvtx();
    EXPECT_EQ(nvtxRangePushA("outer"), 0);
    EXPECT_EQ(nvtxRangePushA("inner"), 1);
    EXPECT_EQ(nvtxRangePop(), 1);
    EXPECT_EQ(nvtxRangePop(), 0);
    EXPECT_LT(nvtxRangePop(), 0);
    const auto seen = markers();
    ASSERT_EQ(seen.size(), 4U);
    EXPECT_STREQ(seen[0].name, "outer");
    EXPECT_STREQ(seen[1].name, "inner");
    EXPECT_EQ(seen[2].name, nullptr);
    EXPECT_EQ(seen[0].flags, CUPTI_ACTIVITY_FLAG_MARKER_START);
    EXPECT_EQ(seen[3].flags, CUPTI_ACTIVITY_FLAG_MARKER_END);
    EXPECT_EQ(seen[1].id, seen[2].id);
    EXPECT_EQ(seen[0].id, seen[3].id);
    EXPECT_NE(seen[0].id, seen[1].id);
    EXPECT_LE(seen[0].timestamp, seen[3].timestamp);
    EXPECT_EQ(seen[0].objectId.pt.processId, static_cast<std::uint32_t>(getpid()));
    EXPECT_EQ(seen[0].domain, nullptr);
  });
}

TEST(Nvtx, ARangeMayEndOnAnotherThread) {
  in_own_process("", [] {
    start_nvtx();
    const nvtxRangeId_t id = nvtxRangeStartA("across");
    std::thread([id] { nvtxRangeEnd(id); }).join();
    const auto seen = markers();
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].id, seen[1].id);
    EXPECT_NE(seen[0].objectId.pt.threadId, seen[1].objectId.pt.threadId);
  });
}

TEST(Nvtx, DomainsRegisteredStringsAndPayloadsArrive) {
  in_own_process("", [] {
    start_nvtx();
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("trainer");
    nvtxEventAttributes_t event = attributes(nullptr);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "step");
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = -17;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff00ff00;
    event.category = 3;
    EXPECT_EQ(nvtxDomainRangePushEx(domain, &event), 0);
    EXPECT_EQ(nvtxDomainRangePop(domain), 0);
    const auto seen = markers();
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_STREQ(seen[0].name, "step");
    EXPECT_STREQ(seen[0].domain, "trainer");
    EXPECT_STREQ(seen[1].domain, "trainer");
    const auto data = client().of<CUpti_ActivityMarkerData2>(CUPTI_ACTIVITY_KIND_MARKER_DATA);
    ASSERT_EQ(data.size(), 1U);
    EXPECT_EQ(data[0].id, seen[0].id);
    EXPECT_EQ(data[0].payloadKind, CUPTI_METRIC_VALUE_KIND_INT64);
    EXPECT_EQ(data[0].payload.metricValueInt64, -17);
    EXPECT_EQ(data[0].color, 0xff00ff00U);
    EXPECT_EQ(data[0].category, 3U);
  });
}

TEST(Nvtx, AMarkIsOneInstantAndWideNamesBecomeUtf8) {
  in_own_process("", [] {
    start_nvtx();
    nvtxMarkW(L"Grün");
    const auto seen = markers();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].flags, CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS);
    EXPECT_STREQ(seen[0].name, "Gr\xc3\xbcn");
  });
}

TEST(Nvtx, NamedThreadsAndStreamsAreNameRecords) {
  in_own_process("", [] {
    start_nvtx();
    nvtxNameOsThreadA(4'242, "loader");
    nvtxNameCudaStreamA(reinterpret_cast<cudaStream_t>(0x2000), "copies");
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    const auto names = client().of<CUpti_ActivityName>(CUPTI_ACTIVITY_KIND_NAME);
    ASSERT_EQ(names.size(), 2U);
    EXPECT_EQ(names[0].objectKind, CUPTI_ACTIVITY_OBJECT_THREAD);
    EXPECT_EQ(names[0].objectId.pt.threadId, 4'242U);
    EXPECT_STREQ(names[1].name, "copies");
    EXPECT_EQ(names[1].objectId.dcs.streamId, 13U);
  });
}

TEST(Nvtx, TheCallbackDomainSeesEachCallOnce) {
  in_own_process("", [] {
    static std::vector<std::string> functions;
    start_nvtx();
    CUpti_SubscriberHandle handle = nullptr;
    ASSERT_EQ(cuptiSubscribe(
                  &handle,
                  [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
                    functions.emplace_back(static_cast<const CUpti_NvtxData*>(data)->functionName);
                  },
                  nullptr),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_NVTX), CUPTI_SUCCESS);
    nvtxRangePushA("a");
    nvtxRangePop();
    const nvtxEventAttributes_t event = attributes("b");
    nvtxMarkEx(&event);
    EXPECT_THAT(functions, ElementsAre("nvtxRangePushA", "nvtxRangePop", "nvtxMarkEx"));
  });
}
