// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"

namespace simgpu {

// Written by generate_entry_points.py.
const char* runtime_api_name(std::uint32_t cbid) noexcept;
const char* driver_api_name(std::uint32_t cbid) noexcept;

const char* api_name(ApiDomain domain, std::uint32_t cbid) noexcept {
  return domain == ApiDomain::runtime ? runtime_api_name(cbid) : driver_api_name(cbid);
}

}  // namespace simgpu
