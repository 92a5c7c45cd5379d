// SPDX-License-Identifier: Apache-2.0
//
// Contexts.
#include "driver/entry.hpp"

#include "core/notices.hpp"

namespace {

CUcontext handle(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

CUresult make_context(CUcontext* out, CUdevice ordinal) {
  Device* device = find_device(ordinal);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = create_context(*device, false);
  thread_state().contexts.push_back(context);
  *out = handle(context);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_DRIVER(cuDevicePrimaryCtxRetain) {
  Device* device = find_device(p.dev);
  if (p.pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *p.pctx = handle(primary_context(*device));
  return CUDA_SUCCESS;
}

// The primary context stays for the life of the process: the runtime may use it at any time.
SIMGPU_DRIVER(cuDevicePrimaryCtxRelease_v2) {
  return find_device(p.dev) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDevicePrimaryCtxGetState) {
  const Device* device = find_device(p.dev);
  if (p.flags == nullptr || p.active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const Lock guard = Engine::get().lock();
  *p.flags = device->flags;
  *p.active = device->primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDevicePrimaryCtxSetFlags_v2) {
  Device* device = find_device(p.dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  device->flags = p.flags;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxCreate_v2) {
  return make_context(p.pctx, p.dev);
}
SIMGPU_DRIVER(cuCtxCreate_v3) {
  return make_context(p.pctx, p.dev);
}
SIMGPU_DRIVER(cuCtxCreate_v4) {
  return make_context(p.pctx, p.dev);
}

SIMGPU_DRIVER(cuCtxDestroy_v2) {
  Context* context = find_context(p.ctx);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (listener_wants(kWantResources)) {
    ResourceRecord record{};
    record.event = ResourceEvent::context_destroy_starting;
    record.context = context;
    record.context_uid = context->uid;
    record.device_id = context->device->id;
    notify_resource(record);
  }
  {
    Lock guard = Engine::get().lock();
    Engine::get().wait_device(guard, *context->device, "context_destroy");
    context->magic = 0;
  }
  std::erase(thread_state().contexts, context);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxPushCurrent_v2) {
  Context* context = find_context(p.ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  thread_state().contexts.push_back(context);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxPopCurrent_v2) {
  std::vector<Context*>& contexts = thread_state().contexts;
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (p.pctx != nullptr) *p.pctx = handle(contexts.back());
  contexts.pop_back();
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxSetCurrent) {
  std::vector<Context*>& contexts = thread_state().contexts;
  if (p.ctx == nullptr) {
    if (!contexts.empty()) contexts.pop_back();
    return CUDA_SUCCESS;
  }
  Context* context = find_context(p.ctx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (contexts.empty()) contexts.push_back(context);
  contexts.back() = context;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxGetCurrent) {
  if (p.pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *p.pctx = handle(driver_context());
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxGetDevice) {
  const Context* context = driver_context();
  if (p.device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *p.device = static_cast<CUdevice>(context->device->id);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxGetFlags) {
  const Context* context = driver_context();
  if (p.flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *p.flags = context->device->flags;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxGetId) {
  const Context* context = p.ctx == nullptr ? driver_context() : find_context(p.ctx);
  if (p.ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *p.ctxId = context->uid;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxGetApiVersion) {
  if (p.version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *p.version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxGetStreamPriorityRange) {
  if (p.leastPriority != nullptr) *p.leastPriority = 0;
  if (p.greatestPriority != nullptr) *p.greatestPriority = -5;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuCtxSetCacheConfig) {
  return CUDA_SUCCESS;
}
SIMGPU_DRIVER(cuCtxSetLimit) {
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER_VOID(cuCtxSynchronize) {
  Context* context = driver_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return as_result(synchronize_device(*context->device));
}

SIMGPU_DRIVER(cuCtxEnablePeerAccess) {
  const Context* peer = find_context(p.peerContext);
  Context* context = driver_context();
  if (peer == nullptr || context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Lock guard = Engine::get().lock();
  const bool added = context->device->peers.insert(peer->device->id).second;
  return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
