// SPDX-License-Identifier: Apache-2.0
#include "api_records.hpp"

#include <cupti.h>

#include "external_correlation.hpp"
#include "library.hpp"

namespace simgpu::cupti {
namespace {

// What ApiCall::tool_data holds for us between enter and exit.
enum ToolData : std::size_t { kCorrelationData = 0, kRecorded = 1, kStart = 2 };

CUpti_CallbackDomain callback_domain(ApiDomain domain) {
  return domain == ApiDomain::runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
}

// CUPTI leaves symbolName undefined for calls that are no launches, and clients that read it have
// crashed: an address that no process can map makes the mistake show.
const char* symbol_name(const ApiCall& call) {
  return call.symbol_name != nullptr ? call.symbol_name
                                     : reinterpret_cast<const char*>(0x5a5a5a5a5a5a5a5aU);
}

void call_subscriber(Library& lib, ApiCall& call, CUpti_ApiCallbackSite site) {
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = call.function_name;
  data.functionParams = call.params;
  data.functionReturnValue = site == CUPTI_API_EXIT ? call.return_value : nullptr;
  data.symbolName = symbol_name(call);
  data.context = static_cast<CUcontext>(call.context);
  data.contextUid = call.context_uid;
  data.correlationData = &call.tool_data[kCorrelationData];
  data.correlationId = call.correlation_id;
  lib.subscriber.notify(callback_domain(call.domain), call.cbid, &data);
}

void record_call(Library& lib, const ApiCall& call) {
  record_external_ids(call.correlation_id);
  CUpti_ActivityAPI record{};
  record.kind = call.domain == ApiDomain::runtime ? CUPTI_ACTIVITY_KIND_RUNTIME
                                                  : CUPTI_ACTIVITY_KIND_DRIVER;
  record.cbid = call.cbid;
  std::uint64_t start = call.tool_data[kStart];
  std::uint64_t end = lib.clock.host_timestamp(call.end_ns);
  lib.faults.distort(record.kind, call.function_name, start, end);
  record.start = start;
  record.end = end;
  record.processId = lib.process_id;
  record.threadId = thread_id_for_records();
  record.correlationId = call.correlation_id;
  record.returnValue = *static_cast<const std::uint32_t*>(call.return_value);
  lib.store.append(record, call.function_name);
}

}  // namespace

void enter_call(ApiCall& call) {
  if (is_inert()) {
    return;
  }
  Library& lib = library();
  if (lib.kinds.api_enabled(call.domain, call.cbid)) {
    call.tool_data[kRecorded] = 1;
    call.tool_data[kStart] = lib.clock.host_timestamp(call.start_ns);
  }
  if (lib.subscriber.wants(callback_domain(call.domain), call.cbid)) {
    call_subscriber(lib, call, CUPTI_API_ENTER);
  }
}

void exit_call(ApiCall& call) {
  if (is_inert()) {
    return;
  }
  Library& lib = library();
  if (lib.subscriber.wants(callback_domain(call.domain), call.cbid)) {
    call_subscriber(lib, call, CUPTI_API_EXIT);
  }
  if (call.tool_data[kRecorded] != 0) {
    record_call(lib, call);
  }
}

}  // namespace simgpu::cupti
