// SPDX-License-Identifier: Apache-2.0
//
// Memory of our own while records go by, from the first million to the last: a training job's activities
// are made, decoded and charged as in a live session, marks and ranges included, every iteration under a
// name of its own.
//
//   soak [RECORDS]      100,000,000 where none are named
//
// Printed at each power of ten: resident memory less what the process held before decoder and engine
// were made, which is mostly the maker of the records.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "activity_buffers.hpp"
#include "attribution/engine.hpp"
#include "record/clock.hpp"
#include "session/live_names.hpp"
#include "sources/cupti/decode.hpp"
#include "sources/sanitizer.hpp"
#include "training_stream.hpp"

namespace {

using namespace gpudiag;

double resident_mib() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1048576.0;
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

/// What a live session keeps in memory between CUPTI's buffers and the ledger.
struct Session {
  Session(NameTable& names_of, const CuptiTable& table)
      : names{names_of, true}, decoder{table, names_of},
        engine{{}, names_of, [this](const IterationLedger& ledger) { valid += ledger.valid() ? 1 : 0; }} {}

  void take(const std::vector<Record>& round, const std::vector<BufferPool::Filled>& buffers) {
    const TimePoint at = round.back().start;
    clock.add({at.ns, at, at + DurationNs{60}});
    for (const Record& record : round) {
      if (record.kind == RecordKind::kRange) sanitizer.add(record);
      if (record.kind != RecordKind::kMark) continue;
      Record mark = record;
      mark.name = names.intern(fmt::format("iteration {}", record.value));
      sanitizer.add(mark);
    }
    for (const auto& buffer : buffers) decoder.decode(buffer, clock, sanitizer);
    decoder.finish_round(sanitizer);
    sanitizer.add(round.back());  // the tick
  }

  std::uint64_t valid = 0;
  LiveNames names;
  ClockMap clock;
  ActivityDecoder decoder;
  Engine engine;
  Sanitizer sanitizer{engine};
};

}  // namespace

int main(int count, char** arguments) {
  const std::uint64_t limit = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 100'000'000;
  NameTable names;
  bench::TrainingStream job{bench::host_bound(), names};
  bench::ActivityBuffers buffers{names};
  const CuptiTable table = bench::activity_table();
  for (int i = 0; i < 3; ++i) buffers.fill(job.next_round());  // the maker has its memory now
  const double before = resident_mib();
  auto session = std::make_unique<Session>(names, table);
  std::uint64_t records = 0;
  std::uint64_t next = 1'000'000;
  double spent = 0, most = 0;
  while (records < limit) {
    const auto& round = job.next_round();
    buffers.fill(round);
    const auto filled = buffers.buffers();
    const double start = thread_seconds();
    session->take(round, filled);
    spent += thread_seconds() - start;
    records += round.size();
    most = std::max(most, resident_mib() - before);
    if (records < next) continue;
    fmt::print("{:>11} records, {} valid iterations: {:.1f} MiB of our own now, {:.1f} at most, {:.0f} ns a record\n",
               records, session->valid, resident_mib() - before, most, spent * 1e9 / static_cast<double>(records));
    std::fflush(stdout);
    next *= 10;
  }
  session->engine.finish();
  return session->valid > 0 ? 0 : 1;
}
