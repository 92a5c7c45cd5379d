// SPDX-License-Identifier: Apache-2.0
//
// Kernels, variables and modules, as nvcc's start-up code or the driver's loader register them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "costs.hpp"
#include "model.hpp"

namespace simgpu {

constexpr std::uint32_t kKernelMagic = 0x4b45524e;
constexpr std::uint32_t kModuleMagic = 0x4d4f4455;

struct Module;
struct RemoteKernel;
class Fault;

// A kernel, behind cudaKernel_t, CUfunction and CUkernel alike. Never destroyed.
struct Kernel {
  std::uint32_t magic = kKernelMagic;
  std::string name;              // mangled
  Module* module = nullptr;
  const void* host_function = nullptr;
  // Looked up at the first launch: libraries register tens of thousands of kernels at start-up and
  // launch a few. `prepared` (release) publishes both.
  std::atomic<bool> prepared{false};
  KernelCost cost;             // until then what holds where no rule matches
  std::vector<Fault*> faults;  // rules for the target "kernel"
  const RemoteKernel* remote = nullptr;  // null: it ends after its duration
  int max_dynamic_shared_bytes = 48 * 1024;
  int preferred_carveout = -1;
};

struct Variable {
  std::string name;
  const void* host_address = nullptr;
  std::size_t bytes = 0;
  bool managed = false;
  std::vector<void*> by_device;  // allocated at first use
};

struct Module {
  std::uint32_t magic = kModuleMagic;
  std::uint32_t id = 0;
  const void* image = nullptr;
  std::vector<Kernel*> kernels;
  std::vector<Variable*> variables;
};

// All are [any thread]; they take a lock of their own, never the engine's.
Module* register_module(const void* image);
Kernel* register_kernel(Module& module, const void* host_function, std::string_view name);
Variable* register_variable(Module& module, const void* host_address, std::string_view name,
                            std::size_t bytes, bool managed);
// The kernel behind a host function's address or a handle; null where there is none.
Kernel* find_kernel(const void* function_or_handle);
// Makes sure that cost and faults of the kernel are known.
void prepare_costs(Kernel& kernel);
// The kernel of the module with this name; made on first demand where the module came from an
// image whose contents the simulation cannot read.
Kernel* module_kernel(Module& module, std::string_view name);
// The kernel with this name of the simulation's own libraries (cuBLAS, NCCL …); made on first
// demand. Where no rule of SIMGPU_COSTS matches, its first argument, an f64, is its duration in ns.
// Where `remote` is given, its first argument is its plan instead (see remote.hpp). The kernel is
// also its handle for cudaLaunchKernel.
Kernel* library_kernel(std::string_view name, const RemoteKernel* remote = nullptr);
Variable* find_variable(const void* host_address);
// Device address of a variable; allocates it on first use. Takes the engine's lock.
void* variable_address(Variable& variable, Device& device);

}  // namespace simgpu
