// SPDX-License-Identifier: Apache-2.0
#include "sources/nvtx/nvtx_source.hpp"

// As a tool: the types of the table to attach to, no NVTX of our own.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <cwchar>
#include <string_view>

#include "sources/host/now.hpp"
#include "sources/host/thread_log.hpp"
#include "sources/nccl/nccl_calls.hpp"
#include "sources/nvtx/nvtx_objects.hpp"

namespace gpudiag {
namespace {

// Not 0, which is the public API's own domain.
constexpr std::uintptr_t kDefaultDomain = 1;

constinit OpenRanges g_open_ranges;
std::atomic<unsigned> g_instances{0};  // relaxed: a number to show

/// The name of an event on the caller's stack: wide text is made UTF-8 here. [hot]
class Message {
 public:
  explicit Message(const char* text) noexcept { set(text); }
  explicit Message(const wchar_t* text) noexcept { set(text); }
  explicit Message(const nvtxEventAttributes_t* attributes) noexcept {
    if (attributes == nullptr) return;
    const nvtxMessageValue_t& message = attributes->message;
    switch (attributes->messageType) {
      case NVTX_MESSAGE_TYPE_ASCII: set(message.ascii); return;
      case NVTX_MESSAGE_TYPE_UNICODE: set(message.unicode); return;
      case NVTX_MESSAGE_TYPE_REGISTERED:
        if (message.registered != nullptr) text_ = reinterpret_cast<const NvtxText*>(message.registered)->view();
        return;
      default: return;
    }
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  std::string_view text() const noexcept { return text_; }

 private:
  void set(const char* text) noexcept {
    if (text != nullptr) text_ = {text, strnlen(text, kRangeTextKept)};
  }
  void set(const wchar_t* text) noexcept {
    if (text == nullptr) return;
    std::size_t size = 0;
    for (; *text != L'\0' && size + 4 <= sizeof buffer_; ++text) size += encode(static_cast<std::uint32_t>(*text), size);
    text_ = {buffer_, size};
  }
  std::size_t encode(std::uint32_t code, std::size_t at) noexcept {
    const auto put = [&](std::size_t i, std::uint32_t byte) { buffer_[at + i] = static_cast<char>(byte); };
    if (code < 0x80) return put(0, code), 1;
    if (code < 0x800) return put(0, 0xc0 | code >> 6), put(1, 0x80 | (code & 0x3f)), 2;
    if (code < 0x10000)
      return put(0, 0xe0 | code >> 12), put(1, 0x80 | (code >> 6 & 0x3f)), put(2, 0x80 | (code & 0x3f)), 3;
    return put(0, 0xf0 | (code >> 18 & 7)), put(1, 0x80 | (code >> 12 & 0x3f)), put(2, 0x80 | (code >> 6 & 0x3f)),
           put(3, 0x80 | (code & 0x3f)), 4;
  }

  std::string_view text_;
  char buffer_[kRangeTextKept + 4];
};

/// A whole number that came with the event; 0 where there is none.
std::uint64_t payload_of(const nvtxEventAttributes_t* attributes) noexcept {
  if (attributes == nullptr) return 0;
  switch (attributes->payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64: return attributes->payload.ullValue;
    case NVTX_PAYLOAD_TYPE_INT64: return static_cast<std::uint64_t>(attributes->payload.llValue);
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32: return attributes->payload.uiValue;
    case NVTX_PAYLOAD_TYPE_INT32: return static_cast<std::uint64_t>(std::int64_t{attributes->payload.iValue});
    default: return 0;
  }
}

std::uintptr_t domain_of(nvtxDomainHandle_t domain) noexcept {
  return domain == nullptr ? kDefaultDomain : reinterpret_cast<std::uintptr_t>(domain);
}

/// The domain is NCCL's own, whose ranges say what the collectives are. [hot]
bool of_nccl(nvtxDomainHandle_t domain) noexcept {
  return domain != nullptr && reinterpret_cast<const NvtxText*>(domain)->view() == "NCCL";
}

void tell_nccl(std::string_view name, const nvtxPayloadData_t* payload) noexcept {
  take_nccl_range(name, payload == nullptr ? nullptr : payload->payload, payload == nullptr ? 0 : payload->size);
}

/// NVTX wants the level of nesting that the range got.
int push(std::uintptr_t domain, const Message& message, std::uint64_t payload) noexcept {
  log_push(domain, message.text(), RangeSource::kNvtx, 0, payload);
  return 0;
}
int pop(std::uintptr_t domain) noexcept {
  log_pop(domain);
  return 0;
}
void mark(const Message& message, std::uint64_t payload) noexcept {
  const TimePoint at = now();
  log_range(message.text(), RangeSource::kNvtx, 0, at, at, payload);
}
nvtxRangeId_t start(const Message& message, std::uint64_t payload) noexcept {
  return host_log_on() ? g_open_ranges.start(message.text(), payload) : 0;
}

template <typename Text>
nvtxDomainHandle_t make_domain(const Text* name) noexcept {
  return reinterpret_cast<nvtxDomainHandle_t>(const_cast<NvtxText*>(keep_text(Message{name}.text())));
}
template <typename Text>
nvtxStringHandle_t make_string(const Text* text) noexcept {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<NvtxText*>(keep_text(Message{text}.text())));
}

// NVTX's function types, in its order.
void mark_ex(const nvtxEventAttributes_t* event) { mark(Message{event}, payload_of(event)); }
void mark_a(const char* text) { mark(Message{text}, 0); }
void mark_w(const wchar_t* text) { mark(Message{text}, 0); }
nvtxRangeId_t start_ex(const nvtxEventAttributes_t* event) { return start(Message{event}, payload_of(event)); }
nvtxRangeId_t start_a(const char* text) { return start(Message{text}, 0); }
nvtxRangeId_t start_w(const wchar_t* text) { return start(Message{text}, 0); }
void end(nvtxRangeId_t id) { g_open_ranges.end(id); }
int push_ex(const nvtxEventAttributes_t* event) { return push(kDefaultDomain, Message{event}, payload_of(event)); }
int push_a(const char* text) { return push(kDefaultDomain, Message{text}, 0); }
int push_w(const wchar_t* text) { return push(kDefaultDomain, Message{text}, 0); }
int pop_default() { return pop(kDefaultDomain); }

void domain_mark_ex(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) { mark_ex(event); }
nvtxRangeId_t domain_start_ex(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) { return start_ex(event); }
void domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }
int domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const Message message{event};
  if (of_nccl(domain) && event != nullptr) {
    const bool extended = event->payloadType == NVTX_PAYLOAD_TYPE_EXT && event->reserved0 > 0;
    tell_nccl(message.text(), extended ? reinterpret_cast<const nvtxPayloadData_t*>(event->payload.ullValue) : nullptr);
  }
  return push(domain_of(domain), message, payload_of(event));
}
int domain_pop_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payload, std::size_t count) {
  if (of_nccl(domain) && count > 0 && payload != nullptr) {
    tell_nccl(log_open_text(domain_of(domain)), payload);  // its name tells of which function
  }
  return pop(domain_of(domain));
}
int domain_pop(nvtxDomainHandle_t domain) { return pop(domain_of(domain)); }
nvtxStringHandle_t register_a(nvtxDomainHandle_t, const char* text) { return make_string(text); }
nvtxStringHandle_t register_w(nvtxDomainHandle_t, const wchar_t* text) { return make_string(text); }
nvtxDomainHandle_t create_a(const char* name) { return make_domain(name); }
nvtxDomainHandle_t create_w(const wchar_t* name) { return make_domain(name); }

struct Module {
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;

  template <typename Function>
  void set(int id, Function function) const noexcept {
    if (table == nullptr || static_cast<unsigned int>(id) >= size || table[id] == nullptr) return;
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
};

void fill_core(const Module& core) noexcept {
  core.set(NVTX_CBID_CORE_MarkEx, mark_ex);
  core.set(NVTX_CBID_CORE_MarkA, mark_a);
  core.set(NVTX_CBID_CORE_MarkW, mark_w);
  core.set(NVTX_CBID_CORE_RangeStartEx, start_ex);
  core.set(NVTX_CBID_CORE_RangeStartA, start_a);
  core.set(NVTX_CBID_CORE_RangeStartW, start_w);
  core.set(NVTX_CBID_CORE_RangeEnd, end);
  core.set(NVTX_CBID_CORE_RangePushEx, push_ex);
  core.set(NVTX_CBID_CORE_RangePushA, push_a);
  core.set(NVTX_CBID_CORE_RangePushW, push_w);
  core.set(NVTX_CBID_CORE_RangePop, pop_default);
}

void fill_domains(const Module& core2) noexcept {
  core2.set(NVTX_CBID_CORE2_DomainMarkEx, domain_mark_ex);
  core2.set(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start_ex);
  core2.set(NVTX_CBID_CORE2_DomainRangeEnd, domain_end);
  core2.set(NVTX_CBID_CORE2_DomainRangePushEx, domain_push_ex);
  core2.set(NVTX_CBID_CORE2_DomainRangePop, domain_pop);
  core2.set(NVTX_CBID_CORE2_DomainRegisterStringA, register_a);
  core2.set(NVTX_CBID_CORE2_DomainRegisterStringW, register_w);
  core2.set(NVTX_CBID_CORE2_DomainCreateA, create_a);
  core2.set(NVTX_CBID_CORE2_DomainCreateW, create_w);
}

}  // namespace

bool attach_nvtx(const void* (*get_export_table)(std::uint32_t table)) noexcept {
  if (get_export_table == nullptr) return false;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return false;
  Module core;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core.table, &core.size) != 1) return false;
  Module core2;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2.table, &core2.size) != 1) core2 = {};
  // A child that is forked before there is a session has threads of other ids.
  static const bool hooked = pthread_atfork(nullptr, nullptr, refresh_after_fork) == 0;
  (void)hooked;
  set_host_log(true);  // ranges that are open when the session starts must be known to it
  fill_core(core);
  fill_domains(core2);
  g_instances.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void attach_nvtx_extension(void* module) noexcept {
  const auto* info = static_cast<const nvtxExtModuleInfo_t*>(module);
  if (info == nullptr || info->structSize < sizeof *info || info->moduleId != NVTX_EXT_PAYLOAD_MODULEID) return;
  if (info->segmentsCount == 0 || info->segments == nullptr) return;
  const nvtxExtModuleSegment_t& segment = info->segments[0];
  if (segment.slotCount <= NVTX3EXT_CBID_nvtxRangePopPayload || segment.functionSlots == nullptr) return;
  segment.functionSlots[NVTX3EXT_CBID_nvtxRangePopPayload] = reinterpret_cast<std::intptr_t>(&domain_pop_payload);
}

unsigned nvtx_instances() noexcept { return g_instances.load(std::memory_order_relaxed); }

}  // namespace gpudiag
