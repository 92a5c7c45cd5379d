// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

#include "engine.hpp"
#include "faults.hpp"
#include "memory.hpp"

namespace simgpu {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<const void*, Kernel*> by_function;
  std::unordered_set<const void*> handles;
  std::unordered_map<const void*, Variable*> variables;
  std::uint32_t next_module = 1;
};

Registry& registry() {
  static auto* const kRegistry = new Registry;  // leaked: modules unregister themselves at exit
  return *kRegistry;
}

// [locked]
Kernel* add_kernel(Registry& r, Module& module, const void* host_function, std::string_view name) {
  auto* kernel = new Kernel;
  kernel->name = name;
  kernel->module = &module;
  kernel->host_function = host_function;
  module.kernels.push_back(kernel);
  r.handles.insert(kernel);
  if (host_function != nullptr) r.by_function[host_function] = kernel;
  return kernel;
}

}  // namespace

Module* register_module(const void* image) {
  Registry& r = registry();
  const std::unique_lock guard(r.mutex);
  auto* module = new Module;
  module->id = r.next_module++;
  module->image = image;
  return module;
}

Kernel* register_kernel(Module& module, const void* host_function, std::string_view name) {
  Registry& r = registry();
  const std::unique_lock guard(r.mutex);
  return add_kernel(r, module, host_function, name);
}

Variable* register_variable(Module& module, const void* host_address, std::string_view name,
                            std::size_t bytes, bool managed) {
  Registry& r = registry();
  const std::unique_lock guard(r.mutex);
  auto* variable = new Variable;
  variable->name = name;
  variable->host_address = host_address;
  variable->bytes = bytes;
  variable->managed = managed;
  module.variables.push_back(variable);
  r.variables[host_address] = variable;
  return variable;
}

Kernel* find_kernel(const void* function_or_handle) {
  Registry& r = registry();
  const std::shared_lock guard(r.mutex);
  const auto at = r.by_function.find(function_or_handle);
  if (at != r.by_function.end()) return at->second;
  if (!r.handles.contains(function_or_handle)) return nullptr;
  return static_cast<Kernel*>(const_cast<void*>(function_or_handle));
}

void prepare_costs(Kernel& kernel) {
  if (kernel.prepared.load(std::memory_order_acquire)) return;
  const std::unique_lock guard(registry().mutex);
  if (kernel.prepared.load(std::memory_order_relaxed)) return;
  kernel.cost = kernel_cost(kernel.name, kernel.cost);
  if (any_faults()) kernel.faults = find_faults("kernel");
  kernel.prepared.store(true, std::memory_order_release);
}

Kernel* module_kernel(Module& module, std::string_view name) {
  Registry& r = registry();
  const std::unique_lock guard(r.mutex);
  for (Kernel* kernel : module.kernels) {
    if (kernel->name == name) return kernel;
  }
  return add_kernel(r, module, nullptr, name);
}

Kernel* library_kernel(std::string_view name, const RemoteKernel* remote) {
  static Module* const kModule = register_module(nullptr);
  Registry& r = registry();
  const std::unique_lock guard(r.mutex);
  for (Kernel* kernel : kModule->kernels) {
    if (kernel->name == name) return kernel;
  }
  Kernel* kernel = add_kernel(r, *kModule, nullptr, name);
  kernel->cost = KernelCost{};
  kernel->cost.ns = kernel->cost.per_thread_ns = 0.0;
  kernel->remote = remote;
  if (remote == nullptr) {
    kernel->cost.argument = 0;
    kernel->cost.argument_type = ArgumentType::f64;
  }
  return kernel;
}

Variable* find_variable(const void* host_address) {
  Registry& r = registry();
  const std::shared_lock guard(r.mutex);
  const auto at = r.variables.find(host_address);
  return at == r.variables.end() ? nullptr : at->second;
}

void* variable_address(Variable& variable, Device& device) {
  const Lock guard = Engine::get().lock();
  const std::size_t slot = variable.managed ? 0 : device.id;
  if (variable.by_device.size() <= slot) variable.by_device.resize(slot + 1, nullptr);
  if (variable.by_device[slot] == nullptr) {
    allocate_memory(variable.managed ? MemoryKind::managed_static : MemoryKind::device_static,
                    device, variable.bytes, 0, &variable.by_device[slot]);
  }
  return variable.by_device[slot];
}

}  // namespace simgpu
