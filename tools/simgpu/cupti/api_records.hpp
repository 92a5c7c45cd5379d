// SPDX-License-Identifier: Apache-2.0
//
// API calls: callbacks at their sites, and their activity records.
#pragma once

#include "../core/listener.hpp"

namespace simgpu::cupti {

/// [hot] Latches whether the call is recorded, then calls the subscriber.
void enter_call(ApiCall& call);
/// [hot] Calls the subscriber, then keeps the record.
void exit_call(ApiCall& call);

}  // namespace simgpu::cupti
