// SPDX-License-Identifier: Apache-2.0
//
// The exported rest: version, errors, time, ids behind handles, detaching.
#include <pthread.h>

#include "../core/listener.hpp"
#include "entry.hpp"

namespace simgpu::cupti {
namespace {

thread_local CUptiResult t_last_error = CUPTI_SUCCESS;

// Names of results 0 … 46; null where CUPTI 13 knows none.
constexpr const char* kResultNames[] = {
    "CUPTI_SUCCESS",
    "CUPTI_ERROR_INVALID_PARAMETER",
    "CUPTI_ERROR_INVALID_DEVICE",
    "CUPTI_ERROR_INVALID_CONTEXT",
    "CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID",
    "CUPTI_ERROR_INVALID_EVENT_ID",
    "CUPTI_ERROR_INVALID_EVENT_NAME",
    "CUPTI_ERROR_INVALID_OPERATION",
    "CUPTI_ERROR_OUT_OF_MEMORY",
    "CUPTI_ERROR_HARDWARE",
    "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
    "CUPTI_ERROR_API_NOT_IMPLEMENTED",
    "CUPTI_ERROR_MAX_LIMIT_REACHED",
    "CUPTI_ERROR_NOT_READY",
    "CUPTI_ERROR_NOT_COMPATIBLE",
    "CUPTI_ERROR_NOT_INITIALIZED",
    "CUPTI_ERROR_INVALID_METRIC_ID",
    "CUPTI_ERROR_INVALID_METRIC_NAME",
    "CUPTI_ERROR_QUEUE_EMPTY",
    "CUPTI_ERROR_INVALID_HANDLE",
    "CUPTI_ERROR_INVALID_STREAM",
    "CUPTI_ERROR_INVALID_KIND",
    "CUPTI_ERROR_INVALID_EVENT_VALUE",
    "CUPTI_ERROR_DISABLED",
    "CUPTI_ERROR_INVALID_MODULE",
    "CUPTI_ERROR_INVALID_METRIC_VALUE",
    "CUPTI_ERROR_HARDWARE_BUSY",
    "CUPTI_ERROR_NOT_SUPPORTED",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
    "CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED",
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE",
    "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
    nullptr,
    nullptr,
    "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
    "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
    "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_INVALID_CHIP_NAME"};

const char* result_name(int result) {
  if (result == CUPTI_ERROR_UNKNOWN) {
    return "CUPTI_ERROR_UNKNOWN";
  }
  return result >= 0 && static_cast<std::size_t>(result) < std::size(kResultNames)
             ? kResultNames[result]
             : nullptr;
}

template <class Id>
CUptiResult give(Id* out, Id id, Id unknown, CUptiResult error) {
  if (id == unknown) {
    return error;
  }
  *out = id;
  return CUPTI_SUCCESS;
}

CUptiResult get_stream_id(CUcontext context, CUstream stream, bool per_thread, uint32_t* id) {
  return id == nullptr ? CUPTI_ERROR_INVALID_PARAMETER
                       : give(id, simgpu::stream_id(context, stream, per_thread), UINT32_MAX,
                              CUPTI_ERROR_INVALID_STREAM);
}

}  // namespace

CUptiResult remember(CUptiResult result) noexcept {
  if (result != CUPTI_SUCCESS) {
    t_last_error = result;
  }
  return result;
}

CUptiResult take_last_error() noexcept { return std::exchange(t_last_error, CUPTI_SUCCESS); }

}  // namespace simgpu::cupti

using namespace simgpu::cupti;

SIMGPU_EXPORT CUptiResult cuptiGetVersion(uint32_t* version) {
  return enter("cuptiGetVersion", [&] {
    if (version == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetLastError() { return take_last_error(); }

SIMGPU_EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (text == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  const char* name = result_name(result);
  *text = name != nullptr ? name : "<unknown>";
  return name != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

// CUPTI 13.0 answers success here for unknown results too, and the bare name for most.
SIMGPU_EXPORT CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  if (text == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  const char* name = result_name(result);
  *text = name != nullptr ? name : "<unknown>";
  return CUPTI_SUCCESS;
}

SIMGPU_EXPORT CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  return enter("cuptiGetTimestamp", [&] {
    if (timestamp == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *timestamp = library().clock.now();
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetContextId(CUcontext context, uint32_t* id) {
  return enter("cuptiGetContextId", [&] {
    if (id == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    return give(id, context != nullptr ? simgpu::context_uid(context) : 0U, 0U,
                CUPTI_ERROR_INVALID_CONTEXT);
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t* id) {
  return enter("cuptiGetDeviceId", [&] {
    if (id == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (simgpu::context_uid(context) == 0) {
      return CUPTI_ERROR_INVALID_DEVICE;
    }
    *id = simgpu::context_device(context);
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* id) {
  return enter("cuptiGetStreamId", [&] { return get_stream_id(context, stream, false, id); });
}

SIMGPU_EXPORT CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream,
                                             uint8_t per_thread, uint32_t* id) {
  return enter("cuptiGetStreamIdEx",
               [&] { return get_stream_id(context, stream, per_thread != 0, id); });
}

SIMGPU_EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  return enter("cuptiGetGraphId", [&] {
    return graph == nullptr || id == nullptr
               ? CUPTI_ERROR_INVALID_PARAMETER
               : give(id, simgpu::graph_id(graph), 0U, CUPTI_ERROR_INVALID_PARAMETER);
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetGraphExecId(CUgraphExec graph, uint32_t* id) {
  return enter("cuptiGetGraphExecId", [&] {
    return graph == nullptr || id == nullptr
               ? CUPTI_ERROR_INVALID_PARAMETER
               : give(id, simgpu::graph_exec_id(graph), 0U, CUPTI_ERROR_INVALID_PARAMETER);
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  return enter("cuptiGetGraphNodeId", [&] {
    return node == nullptr || id == nullptr
               ? CUPTI_ERROR_INVALID_PARAMETER
               : give(id, simgpu::graph_node_id(node), uint64_t{0}, CUPTI_ERROR_INVALID_PARAMETER);
  });
}

SIMGPU_EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return enter("cuptiSetThreadIdType", [&] {
    if (type < 0 || type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE) {
      return CUPTI_ERROR_NOT_SUPPORTED;
    }
    library().settings.thread_id_type.store(type, std::memory_order_relaxed);
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  return enter("cuptiGetThreadIdType", [&] {
    if (type == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *type = static_cast<CUpti_ActivityThreadIdType>(
        library().settings.thread_id_type.load(std::memory_order_relaxed));
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiComputeCapabilitySupported(int major, int minor, int* support) {
  return enter("cuptiComputeCapabilitySupported", [&] {
    if (support == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *support = major > 7 || (major == 7 && minor >= 5) ? 1 : 0;  // CUDA 13 begins with Turing
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiDeviceSupported(CUdevice device, int* support) {
  return enter("cuptiDeviceSupported", [&] {
    if (support == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (device < 0 || static_cast<uint32_t>(device) >= simgpu::device_count()) {
      return CUPTI_ERROR_INVALID_DEVICE;
    }
    *support = 1;
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiDeviceVirtualizationMode(CUdevice device,
                                                        CUpti_DeviceVirtualizationMode* mode) {
  return enter("cuptiDeviceVirtualizationMode", [&] {
    if (mode == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (device < 0 || static_cast<uint32_t>(device) >= simgpu::device_count()) {
      return CUPTI_ERROR_INVALID_DEVICE;
    }
    *mode = CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE;
    return CUPTI_SUCCESS;
  });
}

// Nothing of the client's is called any more: what is still in buffers is lost, and the memory
// of those buffers with it. What comes after it finds the defaults, the clock included.
SIMGPU_EXPORT CUptiResult cuptiFinalize() {
  return enter("cuptiFinalize", [] {
    Library& lib = library();
    lib.kinds.clear();
    lib.subscriber.reset();
    lib.update_wanted();
    lib.store.abandon();
    lib.store.set_per_thread(true);
    lib.settings.reset();
    lib.clock.forget_callback();
    return CUPTI_SUCCESS;
  });
}
