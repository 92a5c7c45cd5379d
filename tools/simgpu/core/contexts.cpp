// SPDX-License-Identifier: Apache-2.0
//
// Devices, contexts and streams: how they come into being and what ids they have.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine.hpp"
#include "memory.hpp"
#include "notices.hpp"
#include "options.hpp"
#include "thread_state.hpp"

namespace simgpu {
namespace {

// CUPTI numbers the default stream of a context 7 and explicit ones from 13 on.
constexpr std::uint32_t kLegacyStreamId = 7;

// `slot` is where the device sits in the machine, `id` its number in this process.
Device* make_device(std::uint32_t id, std::uint32_t slot) {
  auto* device = new Device;
  device->id = id;
  DeviceDescription& d = device->description;
  // The shape of a Hopper-class accelerator; only the name and the memory are configurable.
  d.name = options().device_name.c_str();
  d.memory_bytes = options().memory_bytes;
  d.memory_bandwidth_bytes_per_s = 4'800'000'000'000;
  d.multiprocessors = 132;
  d.core_clock_khz = 1'980'000;
  d.compute_major = options().compute_tenths / 10;
  d.compute_minor = options().compute_tenths % 10;
  d.l2_bytes = 50U << 20;
  d.pci_bus_id = 0x10 + slot;
  const std::uint64_t half[2] = {mix(0x51u + slot), mix(0xa7u + slot)};
  std::memcpy(d.uuid, half, sizeof half);
  return device;
}

// Which of the machine's devices this process sees, in its order: CUDA_VISIBLE_DEVICES, a list of
// numbers. As with the driver, the first entry that is none ends the list.
std::vector<std::uint32_t> visible_devices() {
  std::vector<std::uint32_t> visible;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (std::uint32_t slot = 0; slot < options().devices; ++slot) visible.push_back(slot);
    return visible;
  }
  for (const char* at = list; *at != '\0';) {
    char* end = nullptr;
    const long slot = std::strtol(at, &end, 10);
    const bool known =
        end != at && slot >= 0 && slot < long{options().devices} && (*end == ',' || *end == '\0');
    if (!known) break;
    visible.push_back(static_cast<std::uint32_t>(slot));
    at = *end == ',' ? end + 1 : end;
  }
  return visible;
}

std::vector<Device*> make_devices() {
  std::vector<Device*> devices;
  for (const std::uint32_t slot : visible_devices()) {
    devices.push_back(make_device(static_cast<std::uint32_t>(devices.size()), slot));
  }
  return devices;
}

ResourceRecord resource(ResourceEvent event, Context& context, Stream* stream) {
  ResourceRecord record{};
  record.event = event;
  record.context = &context;
  record.context_uid = context.uid;
  record.device_id = context.device->id;
  if (stream != nullptr) {
    record.stream = stream->kind == StreamKind::legacy ? nullptr : stream;
    record.stream_id = stream->id;
    record.stream_priority = stream->priority;
    record.stream_flag = stream->kind == StreamKind::non_blocking ? 2
                         : stream->kind == StreamKind::legacy     ? 3
                                                                  : 1;
  }
  return record;
}

}  // namespace

std::span<Device* const> all_devices() {
  static const auto* const kDevices = new std::vector<Device*>(make_devices());
  return *kDevices;
}

std::vector<Context*>& all_contexts() {
  static auto* const kContexts = new std::vector<Context*>;
  return *kContexts;
}

Context* create_context(Device& device, bool primary) {
  auto* context = new Context;
  context->device = &device;
  context->primary = primary;
  context->active = true;
  context->legacy.context = context;
  context->legacy.kind = StreamKind::legacy;
  context->legacy.id = kLegacyStreamId;
  {
    const Lock guard = Engine::get().lock();
    if (primary && device.primary != nullptr) {
      delete context;  // another thread was first
      return device.primary;
    }
    context->uid = static_cast<std::uint32_t>(all_contexts().size() + 1);
    all_contexts().push_back(context);
    if (primary) device.primary = context;
  }
  if (listener_wants(kWantResources)) {
    notify_resource(resource(ResourceEvent::context_created, *context, nullptr));
    notify_resource(resource(ResourceEvent::stream_created, *context, &context->legacy));
  }
  return context;
}

Context* primary_context(Device& device) {
  {
    const Lock guard = Engine::get().lock();
    if (device.primary != nullptr) return device.primary;
  }
  return create_context(device, true);
}

Context* require_context() {
  ThreadState& thread = thread_state();
  if (!thread.contexts.empty()) return thread.contexts.back();
  const std::span<Device* const> devices = all_devices();
  if (thread.device >= devices.size()) return nullptr;
  Context* context = primary_context(*devices[thread.device]);
  thread.contexts.push_back(context);
  return context;
}

Stream* create_stream(Context& context, StreamKind kind, int priority) {
  auto* stream = new Stream;
  stream->context = &context;
  stream->kind = kind;
  stream->priority = priority;
  {
    const Lock guard = Engine::get().lock();
    stream->id = context.next_stream_id++;
    if (kind == StreamKind::blocking) context.blocking.push_back(stream);
    context.streams.push_back(stream);
  }
  if (listener_wants(kWantResources)) {
    notify_resource(resource(ResourceEvent::stream_created, context, stream));
  }
  return stream;
}

void destroy_stream(Stream& stream) {
  stream.magic = 0;
  Context& context = *stream.context;
  std::erase(context.streams, &stream);
  // Work still queued goes on, and the legacy stream must still wait for it.
  if (stream.unresolved == 0) {
    context.legacy.tail_end_ns = std::max(context.legacy.tail_end_ns, stream.tail_end_ns);
    std::erase(context.blocking, &stream);
  }
}

}  // namespace simgpu
