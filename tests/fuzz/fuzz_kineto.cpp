// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace file, through reader, sanitizer and engine. Whatever they are: no crash, no
// hang, records in order and with believable times, and each ledger's identity to the nanosecond.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "attribution/engine.hpp"
#include "sources/kineto_file/kineto_trace.hpp"

namespace {

using namespace gpudiag;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

/// A file in memory, the same one for each input.
std::string file_with(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("trace", 0);
  require(file >= 0, "a file can be made");
  require(ftruncate(file, static_cast<off_t>(size)) == 0, "the file can be resized");
  require(pwrite(file, data, size, 0) == static_cast<ssize_t>(size), "the file can be written");
  return fmt::format("/proc/self/fd/{}", file);
}

void check(const IterationLedger& ledger) {
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = read_kineto(file_with(data, size));
  if (!trace) return 0;
  for (const RecordedProcess& process : trace->processes()) {
    Engine engine{{}, trace->names(), check};
    CheckingSink sink{engine};
    trace->deliver(process.id, sink);
    engine.finish();
  }
  return 0;
}
