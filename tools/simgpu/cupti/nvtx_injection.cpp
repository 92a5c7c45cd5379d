// SPDX-License-Identifier: Apache-2.0
//
// libcupti as an NVTX injection library, as the real one is when NVTX_INJECTION64_PATH names it:
// NVTX hands us its tables of function pointers, we put ours in.
//
//   program → NVTX header → our functions → MARKER records, callback domain NVTX
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <generated_nvtx_meta.h>

#include "../core/listener.hpp"
#include "entry.hpp"
#include "nvtx_markers.hpp"

namespace simgpu::cupti {
namespace {

NvtxDomain* to_domain(nvtxDomainHandle_t handle) { return reinterpret_cast<NvtxDomain*>(handle); }

// One callback for each NVTX call, after it has been carried out.
template <class Params>
void notify(std::uint32_t cbid, const Params& params, const void* result = nullptr) {
  Library& lib = library();
  if (lib.subscriber.wants(CUPTI_CB_DOMAIN_NVTX, cbid)) {
    CUpti_NvtxData data{nvtx_function_name(cbid), &params, result};
    lib.subscriber.notify(CUPTI_CB_DOMAIN_NVTX, cbid, &data);
  }
}

// Marks and ranges. The ids of start/end ranges are marker ids.

template <class Char, class Params, std::uint32_t kCbid>
void NVTX_API mark(const Char* message) {
  if (is_inert()) return;
  record_mark({nullptr, intern(message), nullptr});
  notify(kCbid, Params{message});
}

void NVTX_API mark_ex(const nvtxEventAttributes_t* attributes) {
  if (is_inert()) return;
  record_mark(describe(nullptr, attributes));
  notify(CUPTI_CBID_NVTX_nvtxMarkEx, nvtxMarkEx_params{attributes});
}

void NVTX_API domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  if (is_inert()) return;
  record_mark(describe(to_domain(domain), attributes));
  notify(CUPTI_CBID_NVTX_nvtxDomainMarkEx, nvtxDomainMarkEx_params{domain, {attributes}});
}

template <class Params>
nvtxRangeId_t start_range(const Marker& marker, std::uint32_t cbid, const Params& params) {
  if (is_inert()) return 0;
  const nvtxRangeId_t id = next_marker_id();
  record_range_start(marker, static_cast<std::uint32_t>(id));
  notify(cbid, params, &id);
  return id;
}

template <class Char, class Params, std::uint32_t kCbid>
nvtxRangeId_t NVTX_API range_start(const Char* message) {
  return start_range({nullptr, intern(message), nullptr}, kCbid, Params{message});
}

nvtxRangeId_t NVTX_API range_start_ex(const nvtxEventAttributes_t* attributes) {
  return start_range(describe(nullptr, attributes), CUPTI_CBID_NVTX_nvtxRangeStartEx,
                     nvtxRangeStartEx_params{attributes});
}

nvtxRangeId_t NVTX_API domain_range_start_ex(nvtxDomainHandle_t domain,
                                             const nvtxEventAttributes_t* attributes) {
  return start_range(describe(to_domain(domain), attributes),
                     CUPTI_CBID_NVTX_nvtxDomainRangeStartEx,
                     nvtxDomainRangeStartEx_params{domain, {attributes}});
}

void NVTX_API range_end(nvtxRangeId_t id) {
  if (is_inert()) return;
  record_range_end(nullptr, static_cast<std::uint32_t>(id));
  notify(CUPTI_CBID_NVTX_nvtxRangeEnd, nvtxRangeEnd_params{id});
}

void NVTX_API domain_range_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  if (is_inert()) return;
  record_range_end(to_domain(domain), static_cast<std::uint32_t>(id));
  notify(CUPTI_CBID_NVTX_nvtxDomainRangeEnd, nvtxDomainRangeEnd_params{domain, {id}});
}

template <class Params>
int push(const Marker& marker, std::uint32_t cbid, const Params& params) {
  if (is_inert()) return 0;
  const int level = push_range(marker);
  notify(cbid, params, &level);
  return level;
}

template <class Char, class Params, std::uint32_t kCbid>
int NVTX_API range_push(const Char* message) {
  return push({nullptr, intern(message), nullptr}, kCbid, Params{message});
}

int NVTX_API range_push_ex(const nvtxEventAttributes_t* attributes) {
  return push(describe(nullptr, attributes), CUPTI_CBID_NVTX_nvtxRangePushEx,
              nvtxRangePushEx_params{attributes});
}

int NVTX_API domain_range_push_ex(nvtxDomainHandle_t domain,
                                  const nvtxEventAttributes_t* attributes) {
  return push(describe(to_domain(domain), attributes), CUPTI_CBID_NVTX_nvtxDomainRangePushEx,
              nvtxDomainRangePushEx_params{domain, {attributes}});
}

int NVTX_API range_pop() {
  if (is_inert()) return -1;
  const int level = pop_range(nullptr);
  notify(CUPTI_CBID_NVTX_nvtxRangePop, nvtxRangePop_params{nullptr}, &level);
  return level;
}

int NVTX_API domain_range_pop(nvtxDomainHandle_t domain) {
  if (is_inert()) return -1;
  const int level = pop_range(to_domain(domain));
  notify(CUPTI_CBID_NVTX_nvtxDomainRangePop, nvtxDomainRangePop_params{domain}, &level);
  return level;
}

// Domains and registered strings.

template <class Char>
nvtxDomainHandle_t new_domain(const Char* name) {
  static std::atomic<std::uint32_t> last_id{0};
  return reinterpret_cast<nvtxDomainHandle_t>(new NvtxDomain{intern(name), ++last_id});
}

nvtxDomainHandle_t NVTX_API domain_create_a(const char* name) {
  const nvtxDomainHandle_t domain = new_domain(name);
  if (!is_inert()) {
    notify(CUPTI_CBID_NVTX_nvtxDomainCreateA, nvtxDomainCreateA_params{name}, &domain);
  }
  return domain;
}

nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t* name) { return new_domain(name); }

void NVTX_API domain_destroy(nvtxDomainHandle_t domain) {
  if (!is_inert()) {
    notify(CUPTI_CBID_NVTX_nvtxDomainDestroy, nvtxDomainDestroy_params{domain});
  }
}

template <class Char>
nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const Char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(new NvtxString{intern(text)});
}

// Names of resources.

CUpti_ActivityObjectKindId thread_object(std::uint32_t thread) {
  CUpti_ActivityObjectKindId id{};
  id.pt.processId = library().process_id;
  id.pt.threadId = thread;
  return id;
}

CUpti_ActivityObjectKindId device_object(std::uint32_t device, std::uint32_t context = 0,
                                         std::uint32_t stream = 0) {
  CUpti_ActivityObjectKindId id{};
  id.dcs.deviceId = device;
  id.dcs.contextId = context;
  id.dcs.streamId = stream;
  return id;
}

CUpti_ActivityObjectKindId stream_object(void* stream) {
  return device_object(context_device(nullptr), context_uid(nullptr),
                       stream_id(nullptr, stream, false));
}

template <class Char, class Params, std::uint32_t kCbid>
void NVTX_API name_thread(std::uint32_t thread, const Char* name) {
  if (is_inert()) return;
  record_name(CUPTI_ACTIVITY_OBJECT_THREAD, thread_object(thread), intern(name));
  notify(kCbid, Params{thread, name});
}

template <class Char, class Params, std::uint32_t kCbid>
void NVTX_API name_device(int device, const Char* name) {
  if (is_inert()) return;
  record_name(CUPTI_ACTIVITY_OBJECT_DEVICE, device_object(static_cast<std::uint32_t>(device)),
              intern(name));
  notify(kCbid, Params{device, name});
}

template <class Char, class Params, std::uint32_t kCbid>
void NVTX_API name_context(CUcontext context, const Char* name) {
  if (is_inert()) return;
  record_name(CUPTI_ACTIVITY_OBJECT_CONTEXT,
              device_object(context_device(context), context_uid(context)), intern(name));
  notify(kCbid, Params{context, name});
}

template <class Stream, class Char, class Params, std::uint32_t kCbid>
void NVTX_API name_stream(Stream stream, const Char* name) {
  if (is_inert()) return;
  record_name(CUPTI_ACTIVITY_OBJECT_STREAM, stream_object(stream), intern(name));
  notify(kCbid, Params{stream, name});
}

// Installation: each slot of NVTX's tables is the address of a function pointer of its own.

struct Slot {
  unsigned id;
  NvtxFunctionPointer function;
};

template <class Function>
NvtxFunctionPointer erase(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

#define SIMGPU_CB(name) nvtx##name##_params, CUPTI_CBID_NVTX_nvtx##name

const Slot kCore[] = {
    {NVTX_CBID_CORE_MarkEx, erase(mark_ex)},
    {NVTX_CBID_CORE_MarkA, erase(mark<char, SIMGPU_CB(MarkA)>)},
    {NVTX_CBID_CORE_MarkW, erase(mark<wchar_t, SIMGPU_CB(MarkW)>)},
    {NVTX_CBID_CORE_RangeStartEx, erase(range_start_ex)},
    {NVTX_CBID_CORE_RangeStartA, erase(range_start<char, SIMGPU_CB(RangeStartA)>)},
    {NVTX_CBID_CORE_RangeStartW, erase(range_start<wchar_t, SIMGPU_CB(RangeStartW)>)},
    {NVTX_CBID_CORE_RangeEnd, erase(range_end)},
    {NVTX_CBID_CORE_RangePushEx, erase(range_push_ex)},
    {NVTX_CBID_CORE_RangePushA, erase(range_push<char, SIMGPU_CB(RangePushA)>)},
    {NVTX_CBID_CORE_RangePushW, erase(range_push<wchar_t, SIMGPU_CB(RangePushW)>)},
    {NVTX_CBID_CORE_RangePop, erase(range_pop)},
    {NVTX_CBID_CORE_NameOsThreadA, erase(name_thread<char, SIMGPU_CB(NameOsThreadA)>)},
    {NVTX_CBID_CORE_NameOsThreadW, erase(name_thread<wchar_t, SIMGPU_CB(NameOsThreadW)>)}};

const Slot kCore2[] = {{NVTX_CBID_CORE2_DomainMarkEx, erase(domain_mark_ex)},
                       {NVTX_CBID_CORE2_DomainRangeStartEx, erase(domain_range_start_ex)},
                       {NVTX_CBID_CORE2_DomainRangeEnd, erase(domain_range_end)},
                       {NVTX_CBID_CORE2_DomainRangePushEx, erase(domain_range_push_ex)},
                       {NVTX_CBID_CORE2_DomainRangePop, erase(domain_range_pop)},
                       {NVTX_CBID_CORE2_DomainRegisterStringA, erase(register_string<char>)},
                       {NVTX_CBID_CORE2_DomainRegisterStringW, erase(register_string<wchar_t>)},
                       {NVTX_CBID_CORE2_DomainCreateA, erase(domain_create_a)},
                       {NVTX_CBID_CORE2_DomainCreateW, erase(domain_create_w)},
                       {NVTX_CBID_CORE2_DomainDestroy, erase(domain_destroy)}};

const Slot kCuda[] = {
    {NVTX_CBID_CUDA_NameCuDeviceA, erase(name_device<char, SIMGPU_CB(NameCuDeviceA)>)},
    {NVTX_CBID_CUDA_NameCuDeviceW, erase(name_device<wchar_t, SIMGPU_CB(NameCuDeviceW)>)},
    {NVTX_CBID_CUDA_NameCuContextA, erase(name_context<char, SIMGPU_CB(NameCuContextA)>)},
    {NVTX_CBID_CUDA_NameCuContextW, erase(name_context<wchar_t, SIMGPU_CB(NameCuContextW)>)},
    {NVTX_CBID_CUDA_NameCuStreamA, erase(name_stream<CUstream, char, SIMGPU_CB(NameCuStreamA)>)},
    {NVTX_CBID_CUDA_NameCuStreamW,
     erase(name_stream<CUstream, wchar_t, SIMGPU_CB(NameCuStreamW)>)}};

const Slot kCudaRuntime[] = {
    {NVTX_CBID_CUDART_NameCudaDeviceA, erase(name_device<char, SIMGPU_CB(NameCudaDeviceA)>)},
    {NVTX_CBID_CUDART_NameCudaDeviceW, erase(name_device<wchar_t, SIMGPU_CB(NameCudaDeviceW)>)},
    {NVTX_CBID_CUDART_NameCudaStreamA,
     erase(name_stream<cudaStream_t, char, SIMGPU_CB(NameCudaStreamA)>)},
    {NVTX_CBID_CUDART_NameCudaStreamW,
     erase(name_stream<cudaStream_t, wchar_t, SIMGPU_CB(NameCudaStreamW)>)}};

#undef SIMGPU_CB

template <std::size_t N>
void install(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
             const Slot (&slots)[N]) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr) {
    return;  // an older NVTX may lack the module
  }
  for (const Slot& slot : slots) {
    if (slot.id < size && table[slot.id] != nullptr) {
      *table[slot.id] = slot.function;
    }
  }
}

// Returns 1 on success, as NVTX asks.
int attach(NvtxGetExportTableFunc_t get_table) {
  if (get_table == nullptr) {
    return 0;
  }
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) {
    return 0;
  }
  library();
  install(*callbacks, NVTX_CB_MODULE_CORE, kCore);
  install(*callbacks, NVTX_CB_MODULE_CORE2, kCore2);
  install(*callbacks, NVTX_CB_MODULE_CUDA, kCuda);
  install(*callbacks, NVTX_CB_MODULE_CUDART, kCudaRuntime);
  return 1;
}

}  // namespace
}  // namespace simgpu::cupti

SIMGPU_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  return simgpu::cupti::attach(get_table);
}

SIMGPU_EXPORT int cuptiNvtxInitialize2(NvtxGetExportTableFunc_t get_table) {
  return simgpu::cupti::attach(get_table);
}

// The interfaces of NVTX 1 and of its payload extension: refused, so that NVTX stays without.
SIMGPU_EXPORT int InitializeInjectionNvtx(void*) { return 0; }
SIMGPU_EXPORT int cuptiNvtxInitialize(void*) { return 0; }
SIMGPU_EXPORT int InitializeInjectionNvtxExtension(void*) { return 0; }
SIMGPU_EXPORT int cuptiNvtxExtensionInitialize(void*) { return 0; }
