// SPDX-License-Identifier: Apache-2.0
// The table that NVTX hands to tools, filled by the source and called as NVTX calls it.
#include "sources/nvtx/nvtx_source.hpp"

#include <gtest/gtest.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "sources/host/thread_log.hpp"
#include "sources/nccl/nccl_calls.hpp"

namespace gpudiag {
namespace {

/// What NVTX keeps in a program: pointers to its function pointers.
struct FakeNvtx {
  std::array<NvtxFunctionPointer, NVTX_CBID_CORE_SIZE> core{};
  std::array<NvtxFunctionPointer, NVTX_CBID_CORE2_SIZE> core2{};
  std::array<NvtxFunctionPointer*, NVTX_CBID_CORE_SIZE> core_table{};
  std::array<NvtxFunctionPointer*, NVTX_CBID_CORE2_SIZE> core2_table{};
  bool has_core = true;

  FakeNvtx() {
    for (std::size_t i = 0; i < core.size(); ++i) core_table[i] = &core[i];
    for (std::size_t i = 0; i < core2.size(); ++i) core2_table[i] = &core2[i];
  }
  template <typename Function, typename... Arguments>
  auto call(int id, Arguments... arguments) {
    return reinterpret_cast<Function>(core[static_cast<std::size_t>(id)])(arguments...);
  }
  template <typename Function, typename... Arguments>
  auto call2(int id, Arguments... arguments) {
    return reinterpret_cast<Function>(core2[static_cast<std::size_t>(id)])(arguments...);
  }
};

FakeNvtx* g_nvtx = nullptr;

int get_module(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned int* size) {
  if (module == NVTX_CB_MODULE_CORE && g_nvtx->has_core) {
    *table = g_nvtx->core_table.data();
    *size = static_cast<unsigned int>(g_nvtx->core_table.size());
    return 1;
  }
  if (module == NVTX_CB_MODULE_CORE2) {
    *table = g_nvtx->core2_table.data();
    *size = static_cast<unsigned int>(g_nvtx->core2_table.size());
    return 1;
  }
  return 0;
}

const void* export_table(std::uint32_t id) {
  static const NvtxExportTableCallbacks callbacks{sizeof callbacks, get_module};
  return id == NVTX_ETID_CALLBACKS ? &callbacks : nullptr;
}

struct Seen {
  HostMessage message;
  std::string text;
};

std::vector<Seen> drain() {
  std::vector<Seen> seen;
  ThreadLogs::drain([&](const HostMessage& message, std::string_view text) {
    if (message.kind != RecordKind::kOwn) seen.push_back({message, std::string{text}});
  });
  return seen;
}

nvtxEventAttributes_t event(const char* text) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  return attributes;
}

class Nvtx : public ::testing::Test {
 protected:
  void SetUp() override {
    g_nvtx = &nvtx_;
    ASSERT_TRUE(attach_nvtx(export_table));
    drain();
  }
  void TearDown() override { set_host_log(false); }

  FakeNvtx nvtx_;
};

TEST_F(Nvtx, PushAndPopAreARange) {
  nvtx_.call<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA, "iter 5");
  nvtx_.call<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].text, "iter 5");
  EXPECT_EQ(seen[0].message.range, RangeSource::kNvtx);
  EXPECT_EQ(seen[0].message.kind, RecordKind::kRange);
}

TEST_F(Nvtx, WideTextBecomesUtf8) {
  nvtx_.call<nvtxRangePushW_impl_fntype>(NVTX_CBID_CORE_RangePushW, L"Sch\u00fctz \u4e2d \U0001f600");
  nvtx_.call<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  EXPECT_EQ(drain().at(0).text, "Sch\u00fctz \u4e2d \U0001f600");
}

TEST_F(Nvtx, TheNameIsCopiedAtTheCall) {
  char text[] = "before";
  nvtx_.call<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA, text);
  std::copy_n("after!", 6, text);
  nvtx_.call<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  EXPECT_EQ(drain().at(0).text, "before");
}

TEST_F(Nvtx, PayloadNumbersArrive) {
  auto attributes = event("step");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  attributes.payload.iValue = 17;
  nvtx_.call<nvtxRangePushEx_impl_fntype>(NVTX_CBID_CORE_RangePushEx, &attributes);
  nvtx_.call<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  EXPECT_EQ(drain().at(0).message.value, 17u);
}

TEST_F(Nvtx, DomainsNestApartAndRegisteredStringsHaveTheirText) {
  // Static, as handles live for ever: LeakSanitizer must find them.
  static const auto domain = nvtx_.call2<nvtxDomainCreateA_impl_fntype>(NVTX_CBID_CORE2_DomainCreateA, "NCCL");
  static const auto text =
      nvtx_.call2<nvtxDomainRegisterStringA_impl_fntype>(NVTX_CBID_CORE2_DomainRegisterStringA, domain, "allreduce");
  nvtxEventAttributes_t attributes{};
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = text;
  nvtx_.call2<nvtxDomainRangePushEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangePushEx, domain, &attributes);
  nvtx_.call<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA, "default");
  nvtx_.call2<nvtxDomainRangePop_impl_fntype>(NVTX_CBID_CORE2_DomainRangePop, domain);
  nvtx_.call<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].text, "allreduce");
  EXPECT_EQ(seen[1].text, "default");
}

/// What NCCL hands to NVTX.
struct NcclDomain {
  explicit NcclDomain(FakeNvtx& nvtx, const char* function) {
    static const auto made = nvtx.call2<nvtxDomainCreateA_impl_fntype>(NVTX_CBID_CORE2_DomainCreateA, "NCCL");
    domain = made;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = function;
  }
  nvtxDomainHandle_t domain;
  nvtxEventAttributes_t attributes{};
};

std::vector<NcclCall> calls_of(const std::vector<Seen>& seen) {
  std::vector<NcclCall> calls;
  for (const Seen& one : seen) {
    if (one.message.content != HostMessage::Content::kNcclCall) continue;
    calls.emplace_back();
    std::memcpy(&calls.back(), one.text.data(), sizeof calls.back());
  }
  return calls;
}

TEST_F(Nvtx, ARangeOfNcclIsACallAsSoonAsItBegins) {
  NcclDomain nccl{nvtx_, "ncclAllReduce"};
  const struct {
    std::uint64_t communicator = 9, bytes = 4096;
    std::int32_t reduction = 0;
  } values;
  const nvtxPayloadData_t payload{NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, sizeof values, &values};
  nccl.attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  nccl.attributes.reserved0 = 1;
  nccl.attributes.payload.ullValue = reinterpret_cast<std::uintptr_t>(&payload);
  nvtx_.call2<nvtxDomainRangePushEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangePushEx, nccl.domain, &nccl.attributes);
  const auto calls = calls_of(drain());
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].communicator, 9u);
  EXPECT_EQ(calls[0].amount, 4096u);
  nvtx_.call2<nvtxDomainRangePop_impl_fntype>(NVTX_CBID_CORE2_DomainRangePop, nccl.domain);
  EXPECT_EQ(drain().at(0).text, "ncclAllReduce");
}

TEST_F(Nvtx, ARangeThatEndsWithAPayloadEndsAndTellsOfTheCommunicator) {
  std::array<std::intptr_t, 32> slots{};
  nvtxExtModuleSegment_t segment{0, slots.size(), slots.data()};
  nvtxExtModuleInfo_t module{};
  module.structSize = sizeof module;
  module.moduleId = NVTX_EXT_PAYLOAD_MODULEID;
  module.segmentsCount = 1;
  module.segments = &segment;
  attach_nvtx_extension(&module);
  NcclDomain nccl{nvtx_, "ncclCommInitRank"};
  nvtx_.call2<nvtxDomainRangePushEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangePushEx, nccl.domain, &nccl.attributes);
  const struct {
    std::uint64_t communicator = 9;
    std::int32_t ranks = 4, rank = 3, device = 0;
  } values;
  const nvtxPayloadData_t payload{NVTX_PAYLOAD_SCHEMA_ID_STATIC_START, sizeof values, &values};
  using PopPayload = int (*)(nvtxDomainHandle_t, const nvtxPayloadData_t*, std::size_t);
  reinterpret_cast<PopPayload>(slots[NVTX3EXT_CBID_nvtxRangePopPayload])(nccl.domain, &payload, 1);
  const auto seen = drain();
  const auto calls = calls_of(seen);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].source, NcclCall::Source::kCommunicator);
  EXPECT_EQ(calls[0].ranks, 4u);
  EXPECT_EQ(calls[0].rank, 3u);
  EXPECT_EQ(seen.back().text, "ncclCommInitRank");
}

TEST_F(Nvtx, OtherExtensionsAreLetBe) {
  std::array<std::intptr_t, 32> slots{};
  nvtxExtModuleSegment_t segment{0, slots.size(), slots.data()};
  nvtxExtModuleInfo_t module{};
  module.structSize = sizeof module;
  module.moduleId = NVTX_EXT_PAYLOAD_MODULEID + 1;
  module.segmentsCount = 1;
  module.segments = &segment;
  attach_nvtx_extension(&module);
  attach_nvtx_extension(nullptr);
  EXPECT_EQ(slots, (std::array<std::intptr_t, 32>{}));
}

TEST_F(Nvtx, AStartedRangeMayEndOnAnotherThreadAndBelongsToTheFirst) {
  const auto id = nvtx_.call<nvtxRangeStartA_impl_fntype>(NVTX_CBID_CORE_RangeStartA, "prefetch");
  EXPECT_NE(id, 0u);
  std::thread{[&] { nvtx_.call<nvtxRangeEnd_impl_fntype>(NVTX_CBID_CORE_RangeEnd, id); }}.join();
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].text, "prefetch");
  EXPECT_EQ(seen[0].message.thread, this_thread_id());
}

TEST_F(Nvtx, AnEndTwiceOrOfNothingIsNothing) {
  const auto id = nvtx_.call<nvtxRangeStartA_impl_fntype>(NVTX_CBID_CORE_RangeStartA, "once");
  for (const auto end : {id, id, nvtxRangeId_t{0}, nvtxRangeId_t{123'456'789}})
    nvtx_.call<nvtxRangeEnd_impl_fntype>(NVTX_CBID_CORE_RangeEnd, end);
  EXPECT_EQ(drain().size(), 1u);
}

TEST_F(Nvtx, LeakedRangesTakeABoundedTable) {
  for (int i = 0; i < 2000; ++i) nvtx_.call<nvtxRangeStartA_impl_fntype>(NVTX_CBID_CORE_RangeStartA, "leak");
  EXPECT_EQ(nvtx_.call<nvtxRangeStartA_impl_fntype>(NVTX_CBID_CORE_RangeStartA, "leak"), 0u);
}

TEST_F(Nvtx, AMarkIsAnInstant) {
  nvtx_.call<nvtxMarkA_impl_fntype>(NVTX_CBID_CORE_MarkA, "here");
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].message.start, seen[0].message.end);
}

TEST_F(Nvtx, NullNamesAndAttributesAreEmptyNames) {
  nvtx_.call<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA, nullptr);
  nvtx_.call<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  nvtx_.call<nvtxRangePushEx_impl_fntype>(NVTX_CBID_CORE_RangePushEx, nullptr);
  nvtx_.call<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].text, "");
}

TEST(NvtxAttach, RefusesAnInstanceWithoutTheCoreModule) {
  FakeNvtx old;
  old.has_core = false;
  g_nvtx = &old;
  EXPECT_FALSE(attach_nvtx(export_table));
  EXPECT_FALSE(attach_nvtx(nullptr));
  EXPECT_FALSE(attach_nvtx([](std::uint32_t) -> const void* { return nullptr; }));
}

}  // namespace
}  // namespace gpudiag
