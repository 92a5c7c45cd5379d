// SPDX-License-Identifier: Apache-2.0
//
// The attributes of the activity API: sizes, defaults and values, as cupti_activity.h states them.
#pragma once

#include <cupti.h>

#include <cstddef>

namespace simgpu::cupti {

class ActivityStore;

/// CUPTI_ERROR_INVALID_PARAMETER for null arguments and no attribute, _NOT_SUPPORTED for those
/// CUPTI gave up in CUDA 12.3, _PARAMETER_SIZE_NOT_SUFFICIENT for a value that is too short.
CUptiResult get_attribute(const ActivityStore& store, CUpti_ActivityAttribute attribute,
                          std::size_t* size, void* value);
CUptiResult set_attribute(ActivityStore& store, CUpti_ActivityAttribute attribute,
                          std::size_t* size, const void* value);

}  // namespace simgpu::cupti
