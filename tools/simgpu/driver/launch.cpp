// SPDX-License-Identifier: Apache-2.0
//
// Modules, libraries, kernels and their launch. An image's contents are not read: a kernel comes
// into being when it is asked for by name.
#include "driver/entry.hpp"

#include <algorithm>
#include <cstdio>

#include "core/notices.hpp"

namespace {

Module* find_module(void* handle) {
  auto* module = static_cast<Module*>(handle);
  return module != nullptr && module->magic == kModuleMagic ? module : nullptr;
}

template <typename Handle>
CUresult load(Handle* out, const void* image) {
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = register_module(image);
  *out = reinterpret_cast<Handle>(module);
  if (listener_wants(kWantResources)) {
    ResourceRecord record{};
    record.event = ResourceEvent::module_loaded;
    record.context = current_context();
    record.context_uid = context_uid(record.context);
    record.module_id = module->id;
    notify_resource(record);
  }
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult load_file(Handle* out, const char* path) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  std::fclose(file);
  return load(out, path);
}

template <typename Handle>
CUresult kernel_by_name(Handle* out, void* module_handle, const char* name) {
  Module* module = find_module(module_handle);
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<Handle>(module_kernel(*module, name));
  return CUDA_SUCCESS;
}

CUresult unload(void* handle) {
  Module* module = find_module(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (listener_wants(kWantResources)) {
    ResourceRecord record{};
    record.event = ResourceEvent::module_unload_starting;
    record.context = current_context();
    record.context_uid = context_uid(record.context);
    record.module_id = module->id;
    notify_resource(record);
  }
  module->magic = 0;  // kernels of it may still be queued: it stays
  return CUDA_SUCCESS;
}

CUresult launch(void* function, KernelWork work, CUstream stream) {
  work.kernel = find_kernel(function);
  if (work.kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const int error = prepare_kernel(work)) {
    // The driver has no "invalid configuration".
    return error == 9 ? CUDA_ERROR_INVALID_VALUE : as_result(error);
  }
  return with_stream(stream, [&](Stream& s) { return submit(s, work); });
}

CUresult get_attribute(int* out, CUfunction_attribute attribute, const void* function) {
  const Kernel* kernel = find_kernel(function);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *out = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *out = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *out = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *out = kernel->max_dynamic_shared_bytes;
      break;
    default:
      *out = 0;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(const void* function, CUfunction_attribute attribute, int value) {
  Kernel* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    kernel->max_dynamic_shared_bytes = value;
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_DRIVER(cuModuleLoad) {
  return load_file(p.module, p.fname);
}
SIMGPU_DRIVER(cuModuleLoadData) {
  return load(p.module, p.image);
}
SIMGPU_DRIVER(cuModuleLoadDataEx) {
  return load(p.module, p.image);
}
SIMGPU_DRIVER(cuModuleLoadFatBinary) {
  return load(p.module, p.fatCubin);
}
SIMGPU_DRIVER(cuModuleUnload) {
  return unload(p.hmod);
}
SIMGPU_DRIVER(cuModuleGetFunction) {
  return kernel_by_name(p.hfunc, p.hmod, p.name);
}
SIMGPU_DRIVER(cuLibraryLoadData) {
  return load(p.library, p.code);
}
SIMGPU_DRIVER(cuLibraryLoadFromFile) {
  return load_file(p.library, p.fileName);
}
SIMGPU_DRIVER(cuLibraryUnload) {
  return unload(p.library);
}
SIMGPU_DRIVER(cuLibraryGetKernel) {
  return kernel_by_name(p.pKernel, p.library, p.name);
}

// A library's module and a kernel's function are the same things here.
SIMGPU_DRIVER(cuLibraryGetModule) {
  if (p.pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (find_module(p.library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *p.pMod = reinterpret_cast<CUmodule>(p.library);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuKernelGetFunction) {
  if (p.pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (find_kernel(p.kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *p.pFunc = reinterpret_cast<CUfunction>(p.kernel);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuFuncGetName) {
  const Kernel* kernel = find_kernel(p.hfunc);
  if (p.name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *p.name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuKernelGetName) {
  const Kernel* kernel = find_kernel(p.hfunc);
  if (p.name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *p.name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuFuncGetAttribute) {
  return get_attribute(p.pi, p.attrib, p.hfunc);
}
SIMGPU_DRIVER(cuFuncSetAttribute) {
  return set_attribute(p.hfunc, p.attrib, p.value);
}
SIMGPU_DRIVER(cuKernelGetAttribute) {
  return get_attribute(p.pi, p.attrib, p.kernel);
}
SIMGPU_DRIVER(cuKernelSetAttribute) {
  return set_attribute(p.kernel, p.attrib, p.val);
}
SIMGPU_DRIVER(cuFuncSetCacheConfig) {
  return find_kernel(p.hfunc) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor) {
  if (p.numBlocks == nullptr || p.blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (find_kernel(p.func) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *p.numBlocks = std::min(2048 / p.blockSize, 32);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuLaunchKernel) {
  KernelWork work;
  work.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  work.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  work.shared_bytes = p.sharedMemBytes;
  work.arguments = p.kernelParams;
  return launch(p.f, work, p.hStream);
}

SIMGPU_DRIVER(cuLaunchCooperativeKernel) {
  KernelWork work;
  work.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  work.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  work.shared_bytes = p.sharedMemBytes;
  work.arguments = p.kernelParams;
  work.cooperative = true;
  return launch(p.f, work, p.hStream);
}

SIMGPU_DRIVER(cuLaunchKernelEx) {
  if (p.config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUlaunchConfig& config = *p.config;
  KernelWork work;
  work.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  work.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  work.shared_bytes = config.sharedMemBytes;
  work.arguments = p.kernelParams;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      work.cooperative = attribute.value.cooperative != 0;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      work.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                      attribute.value.clusterDim.z};
    }
  }
  return launch(p.f, work, config.hStream);
}

SIMGPU_DRIVER(cuLaunchHostFunc) {
  if (p.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(p.hStream, [&](Stream& s) {
    return submit(s, HostWork{p.fn, nullptr, p.userData});
  });
}

SIMGPU_DRIVER(cuGraphLaunch) {
  auto* exec = reinterpret_cast<GraphExec*>(p.hGraph);
  if (exec == nullptr || exec->magic != kExecMagic) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(p.hStream, [&](Stream& stream) { return launch_graph(*exec, stream); });
}
