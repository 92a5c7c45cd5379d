// SPDX-License-Identifier: Apache-2.0
// Prints, for recordings of the ranks of one job on one host, every collective as a line of JSON: what
// its record says of it, and how its time divides. Arguments: the recordings, by rank.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "attribution/ranks/clock_fit.hpp"
#include "attribution/ranks/collective_watch.hpp"
#include "attribution/ranks/job_table.hpp"
#include "record/recording.hpp"

using namespace gpudiag;

namespace {

struct Read final : RecordSink {
  explicit Read(const NameTable& names) : watch{names} {}
  void add(const Record& record) override {
    watch.add(record);
    if (record.is_operation()) device = record.device;
  }
  CollectiveWatch watch;
  DeviceId device{};
};

/// The whole recording as one iteration.
RankSummary read_rank(const char* path, std::uint32_t rank) {
  NameTable names;
  std::ifstream file{path, std::ios::binary};
  RecordingReader reader{names, [&](char* to, std::size_t size) {
                           file.read(to, static_cast<std::streamsize>(size));
                           return static_cast<std::size_t>(file.gcount());
                         }};
  RankSummary summary;
  summary.who.rank = rank;
  summary.who.host = "one";
  if (reader.open()) return summary;
  Read read{names};
  while (reader.next(read)) {
  }
  summary.uses = read.watch.take(read.device, {kTimeMin, kTimeMax});
  summary.abouts = read.watch.abouts();
  RankIteration all;
  all.use_count = static_cast<std::uint32_t>(summary.uses.size());
  summary.iterations.push_back(all);
  return summary;
}

}  // namespace

int main(int count, char** paths) {
  std::vector<RankSummary> ranks;
  for (int i = 1; i < count; ++i) ranks.push_back(read_rank(paths[i], static_cast<std::uint32_t>(i - 1)));
  JobTable table = make_job_table(ranks);
  align(table, fit_clocks(ranks, table));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::size_t place = 0;
    for (const JobUse& use : table.uses_of(r, 0)) {
      TimePoint last = use.arrival;
      if (use.match != kNowhere)
        for (const std::uint32_t id : table.members_of(table.matches[use.match]))
          last = std::max(last, table.uses[id].arrival);
      const CollectiveUse& own = ranks[r].uses[place++];
      std::printf("{\"rank\": %zu, \"about\": \"%s\", \"sequence\": %lld, \"matched\": %s, \"wait_ns\": %lld, "
                  "\"transfer_ns\": %lld}\n",
                  r, text_of(ranks[r].abouts[own.about]).c_str(),
                  own.sequence == kNoSequence ? -1LL : static_cast<long long>(own.sequence),
                  use.match == kNowhere ? "false" : "true", static_cast<long long>((last - use.arrival).ns),
                  static_cast<long long>((use.end - last).ns));
    }
  }
  return 0;
}
