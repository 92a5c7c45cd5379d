// SPDX-License-Identifier: Apache-2.0
//
// The exported activity API (cupti_activity.h): kinds, buffers, flushes, settings.
#include "../core/listener.hpp"
#include "attributes.hpp"
#include "entry.hpp"
#include "external_correlation.hpp"
#include "record_order.hpp"
#include "resource_records.hpp"

namespace simgpu::cupti {
namespace {

CUptiResult set_kind(CUpti_ActivityKind kind, bool on) {
  if (const CUptiResult checked = check_kind(kind); checked != CUPTI_SUCCESS) {
    return checked;
  }
  Library& lib = library();
  lib.kinds.set(kind, on);
  lib.update_wanted();
  lib.worker.start();
  lib.worker.reconsider();
  return CUPTI_SUCCESS;
}

CUptiResult set_kind_for_context(CUcontext context, CUpti_ActivityKind kind, bool on) {
  const std::uint32_t uid = context != nullptr ? simgpu::context_uid(context) : 0;
  if (uid == 0) {
    return CUPTI_ERROR_INVALID_CONTEXT;
  }
  if (const CUptiResult checked = check_kind(kind); checked != CUPTI_SUCCESS) {
    return checked;
  }
  Library& lib = library();
  lib.kinds.set_for_context(kind, uid, on);
  lib.update_wanted();
  lib.worker.start();
  return CUPTI_SUCCESS;
}

CUptiResult set_api(ApiDomain domain, CUpti_CallbackId cbid, bool on) {
  Library& lib = library();
  if (!lib.kinds.set_api(domain, cbid, on)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  lib.update_wanted();
  lib.worker.start();
  return CUPTI_SUCCESS;
}

CUptiResult flush(std::uint32_t flags) {
  Library& lib = library();
  // From within a request callback the core's lock may be held: waiting for the worker, which
  // needs it, would never end.
  if (!lib.store.has_client() || ActivityStore::in_request()) {
    return CUPTI_ERROR_INVALID_OPERATION;
  }
  lib.worker.flush((flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}

CUptiResult set_flag(std::atomic<bool>& flag, std::uint8_t enable) {
  flag.store(enable != 0, std::memory_order_relaxed);
  return CUPTI_SUCCESS;
}

bool is_valid(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

}  // namespace
}  // namespace simgpu::cupti

using namespace simgpu::cupti;
using simgpu::ApiDomain;

SIMGPU_EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return enter("cuptiActivityEnable", [&] { return set_kind(kind, true); }, kind_name(kind));
}

SIMGPU_EXPORT CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  return enter(
      "cuptiActivityEnableAndDump",
      [&] {
        const CUptiResult enabled = set_kind(kind, true);
        if (enabled == CUPTI_SUCCESS) {
          dump_existing(kind);
        }
        return enabled;
      },
      kind_name(kind));
}

SIMGPU_EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return enter("cuptiActivityDisable", [&] { return set_kind(kind, false); }, kind_name(kind));
}

SIMGPU_EXPORT CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  return enter(
      "cuptiActivityEnableContext", [&] { return set_kind_for_context(context, kind, true); },
      kind_name(kind));
}

SIMGPU_EXPORT CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
  return enter(
      "cuptiActivityDisableContext", [&] { return set_kind_for_context(context, kind, false); },
      kind_name(kind));
}

SIMGPU_EXPORT CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  return enter("cuptiActivityEnableRuntimeApi",
               [&] { return set_api(ApiDomain::runtime, cbid, enable != 0); });
}

SIMGPU_EXPORT CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  return enter("cuptiActivityEnableDriverApi",
               [&] { return set_api(ApiDomain::driver, cbid, enable != 0); });
}

SIMGPU_EXPORT CUptiResult
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                               CUpti_BuffersCallbackCompleteFunc completed) {
  return enter("cuptiActivityRegisterCallbacks", [&] {
    if (requested == nullptr || completed == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    library().store.set_client(requested, completed);
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  return enter("cuptiActivityFlushAll", [&] { return flush(flag); });
}

SIMGPU_EXPORT CUptiResult cuptiActivityFlush(CUcontext, uint32_t, uint32_t flag) {
  return enter("cuptiActivityFlush", [&] { return flush(flag); });
}

SIMGPU_EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t time) {
  return enter("cuptiActivityFlushPeriod", [&] {
    library().worker.start();
    library().worker.set_period(time);
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                                     CUpti_Activity** record) {
  return enter("cuptiActivityGetNextRecord", [&] {
    return buffer == nullptr || record == nullptr ? CUPTI_ERROR_INVALID_PARAMETER
                                                  : next_record(buffer, valid, record);
  });
}

SIMGPU_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  return enter("cuptiActivityGetNumDroppedRecords", [&] {
    if (dropped == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *dropped = library().store.take_dropped();
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute,
                                                    size_t* size, void* value) {
  return enter("cuptiActivityGetAttribute",
               [&] { return get_attribute(library().store, attribute, size, value); });
}

SIMGPU_EXPORT CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute,
                                                    size_t* size, void* value) {
  return enter("cuptiActivitySetAttribute",
               [&] { return set_attribute(library().store, attribute, size, value); });
}

SIMGPU_EXPORT CUptiResult
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  return enter("cuptiActivityRegisterTimestampCallback", [&] {
    if (callback == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    library().clock.set_callback(callback);
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult
cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  return enter("cuptiActivityPushExternalCorrelationId", [&] {
    if (!is_valid(kind)) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    push_external_id(kind, id);
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult
cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t* last) {
  return enter("cuptiActivityPopExternalCorrelationId", [&] {
    if (!is_valid(kind)) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    uint64_t id = 0;
    if (!pop_external_id(kind, id)) {
      return CUPTI_ERROR_QUEUE_EMPTY;
    }
    if (last != nullptr) {
      *last = id;
    }
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  return enter("cuptiActivityEnableLatencyTimestamps",
               [&] { return set_flag(library().settings.latency_timestamps, enable); });
}

SIMGPU_EXPORT CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable) {
  return enter("cuptiActivityEnableAllSyncRecords",
               [&] { return set_flag(library().settings.all_sync_records, enable); });
}

SIMGPU_EXPORT CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  return enter("cuptiActivityEnableCudaEventDeviceTimestamps",
               [&] { return set_flag(library().settings.event_timestamps, enable); });
}

// CUPTI has no legacy profiler any more; this one always says so.
SIMGPU_EXPORT CUptiResult cuptiActivityConfigurePCSampling(CUcontext,
                                                           CUpti_ActivityPCSamplingConfig*) {
  return enter("cuptiActivityConfigurePCSampling",
               [] { return CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED; });
}

SIMGPU_EXPORT CUptiResult cuptiActivityConfigureUnifiedMemoryCounter(
    CUpti_ActivityUnifiedMemoryCounterConfig* config, uint32_t) {
  return enter("cuptiActivityConfigureUnifiedMemoryCounter", [&] {
    return config == nullptr ? CUPTI_ERROR_INVALID_PARAMETER
                             : CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED;
  });
}
