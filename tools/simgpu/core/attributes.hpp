// SPDX-License-Identifier: Apache-2.0
//
// What a simulated device answers to cudaDeviceGetAttribute and cuDeviceGetAttribute.
#pragma once

#include <optional>

#include "model.hpp"

namespace simgpu {

// `id` is a CUdevice_attribute (cudaDeviceAttr has the same numbers). Empty for one that does not
// exist; 0 for the many features the simulation does not have.
std::optional<int> device_attribute(const Device& device, int id);

}  // namespace simgpu
