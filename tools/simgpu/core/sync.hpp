// SPDX-License-Identifier: Apache-2.0
//
// Events, and the calls that wait: they block for real and are told to the listener.
// Results are cudaError_t; all take the engine's lock themselves.
#pragma once

#include <cstdint>

#include "model.hpp"

namespace simgpu {

Event* create_event(Context& context, unsigned flags);
int destroy_event(Event& event);
int record_event(Event& event, Stream& stream);
int stream_wait_event(Stream& stream, Event& event);
int query_event(Event& event);
int synchronize_event(Event& event);
int elapsed_ns(Event& start, Event& end, std::int64_t& out);

int query_stream(Stream& stream);
int synchronize_stream(Stream& stream);
int synchronize_device(Device& device);

// The event behind a handle, or null.
Event* find_event(void* handle);

}  // namespace simgpu
