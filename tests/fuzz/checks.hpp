// SPDX-License-Identifier: Apache-2.0
// What must hold of any trace whatsoever, for the fuzzers of all readers.
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "attribution/engine.hpp"
#include "sources/recorded/recorded_trace.hpp"

namespace gpudiag::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

/// A file in memory, the same one for each input.
inline std::string file_with(const void* data, std::size_t size) {
  static const int file = memfd_create("trace", 0);
  require(file >= 0, "a file can be made");
  require(ftruncate(file, static_cast<off_t>(size)) == 0, "the file can be resized");
  require(pwrite(file, data, size, 0) == static_cast<ssize_t>(size), "the file can be written");
  return fmt::format("/proc/self/fd/{}", file);
}

inline void check(const IterationLedger& ledger) {
  DurationNs idle;
  for (const DurationNs part : ledger.idle_by_cause) {
    require(part.ns >= 0, "no cause has less than nothing");
    idle += part;
  }
  require(idle == ledger.idle, "the causes add up to idle");
  require(ledger.wall == ledger.compute + ledger.communication + ledger.copy + ledger.idle,
          "the states add up to wall");
}

/// Passes on what it has looked at.
class CheckingSink final : public RecordSink {
 public:
  explicit CheckingSink(RecordSink& next) : next_{next} {}
  void add(const Record& record) override {
    require(record.start <= record.end, "no record ends before it starts");
    if (record.kind == RecordKind::kTick) {
      require(tick_ <= record.start, "ticks are in order");
      tick_ = record.start;
    } else if (!record.has(record_flag::kDefective)) {
      require(tick_ <= record.end, "what ended before a tick was delivered before it");
    }
    next_.add(record);
  }

 private:
  RecordSink& next_;
  TimePoint tick_ = kTimeMin;
};

/// Through sanitizer and engine.
inline void check(const RecordedTrace& trace) {
  for (const RecordedProcess& process : trace.processes()) {
    Engine engine{{}, trace.names(), [](const IterationLedger& ledger) { check(ledger); }};
    CheckingSink sink{engine};
    trace.deliver(process.id, sink);
    engine.finish();
  }
}

}  // namespace gpudiag::fuzz
