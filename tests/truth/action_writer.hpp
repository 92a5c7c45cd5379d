// SPDX-License-Identifier: Apache-2.0
// Flow: [job] -> program -> machine -> tracer -> engine under test; judge compares.
// Writes single actions at the end of a script, with the ordinary host time of each.
#pragma once

#include <string_view>

#include "job.hpp"
#include "program.hpp"

namespace gpudiag::truth {

class ActionWriter {
 public:
  /// With `free_launches` launches, other calls that do not block and the code between them take no
  /// host time at all: the counterfactual of launching slowly.
  ActionWriter(const JobShape& shape, bool free_launches)
      : shape_(shape), free_launches_(free_launches) {}

  static void work(Script& on, DurationNs host) {
    if (host.ns > 0) on.actions.push_back({.what = Do::kWork, .host = host});
  }
  void enter(Script& on, std::string_view name, RangeSource source) {
    on.actions.push_back({.what = Do::kEnter, .name = program_.name(name), .range = source});
  }
  static void leave(Script& on) { on.actions.push_back({.what = Do::kLeave}); }

  // One kernel of an operator: dispatch, launch.
  void kernel(Script& on, std::uint32_t stream, DurationNs length, Noise& noise,
              std::string_view op) {
    const DurationNs dispatch = call_time(noise.around(shape_.dispatch, 20));
    const DurationNs launch = call_time(noise.around(shape_.launch, 20));
    const DurationNs latency = noise.around(shape_.latency, 10);
    enter(on, op, RangeSource::kOperator);
    work(on, dispatch);
    on.actions.push_back({.what = Do::kLaunch,
                          .host = launch,
                          .device_time = noise.around(length, shape_.noise_percent),
                          .latency = latency,
                          .stream = stream});
    leave(on);
  }
  void graph(Script& on, std::uint32_t stream, std::uint32_t nodes, DurationNs length,
             Noise& noise) {
    on.actions.push_back({.what = Do::kGraphLaunch,
                          .host = call_time(microseconds(12)),
                          .device_time = noise.around(length, shape_.noise_percent),
                          .latency = microseconds(6),
                          .count = nodes,
                          .stream = stream});
    work(on, call_time(shape_.dispatch));
  }
  void copy(Script& on, std::uint32_t stream, CopyKind kind, std::uint64_t bytes, bool pageable,
            bool blocks, DurationNs host = microseconds(5)) {
    on.actions.push_back({.what = Do::kCopy,
                          .host = call_time(host),
                          .latency = microseconds(2),
                          .count = bytes,
                          .stream = stream,
                          .copy = kind,
                          .blocks = blocks,
                          .pageable = pageable});
  }
  void record(Script& on, std::uint32_t event, std::uint32_t stream) {
    on.actions.push_back({.what = Do::kRecord,
                          .host = call_time(microseconds(1)),
                          .stream = stream,
                          .event = event});
  }
  void stream_wait(Script& on, std::uint32_t stream, std::uint32_t event) {
    on.actions.push_back({.what = Do::kStreamWait,
                          .host = call_time(microseconds(1)),
                          .stream = stream,
                          .event = event});
  }
  static void event_sync(Script& on, std::uint32_t event) {
    on.actions.push_back({.what = Do::kEventSync, .host = microseconds(2), .event = event});
  }
  static void stream_sync(Script& on, std::uint32_t stream) {
    on.actions.push_back({.what = Do::kStreamSync, .host = microseconds(2), .stream = stream});
  }
  static void take(Script& on, std::uint32_t semaphore) {
    on.actions.push_back({.what = Do::kTake, .semaphore = semaphore});
  }
  static void put(Script& on, std::uint32_t semaphore) {
    on.actions.push_back({.what = Do::kPut, .semaphore = semaphore});
  }

  void item(Script& on, std::uint32_t stream) {
    enter(on, "aten::item", RangeSource::kOperator);
    enter(on, "aten::_local_scalar_dense", RangeSource::kOperator);
    work(on, microseconds(2));
    Action read{.what = Do::kCopy,
                .host = microseconds(5),
                .latency = microseconds(2),
                .count = 4,
                .stream = stream,
                .copy = CopyKind::kDeviceToHost,
                .blocks = shape_.item_through_pageable,
                .pageable = shape_.item_through_pageable};
    on.actions.push_back(read);
    stream_sync(on, stream);
    leave(on);
    leave(on);
  }

  Program program_;

 private:
  DurationNs call_time(DurationNs host) const { return free_launches_ ? DurationNs{} : host; }

  const JobShape& shape_;
  bool free_launches_;
};

}  // namespace gpudiag::truth
