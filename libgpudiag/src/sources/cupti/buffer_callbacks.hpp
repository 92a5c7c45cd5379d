// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The two functions that CUPTI calls for activity buffers, and the one pool they lead to.
#pragma once

#include "sources/cupti/buffer_pool.hpp"
#include "sources/cupti/cupti_abi.hpp"

namespace gpudiag {

/// `pool` must live for ever: CUPTI may call at any time from now on. One pool a process.
void set_buffer_pool(BufferPool* pool) noexcept;

/// Makes this process's activity records come to the pool. Whoever had them before has them no more.
CUptiResult register_buffer_callbacks(const CuptiTable& cupti);

}  // namespace gpudiag
