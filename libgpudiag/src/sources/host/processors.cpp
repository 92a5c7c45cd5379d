// SPDX-License-Identifier: Apache-2.0
#include "sources/host/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sources/host/proc_file.hpp"

namespace gpudiag {
namespace {

// Between two looks there must be this much for the ticks of 10 ms to say something.
constexpr std::uint64_t kTicksNeeded = 8;

std::vector<unsigned> allowed_processors() {
  std::vector<unsigned> allowed;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (unsigned i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) allowed.push_back(i);
  return allowed;
}

ProcessorTicks ticks_of_line(std::string_view line) {
  // user nice system idle iowait irq softirq steal; guests are in user already.
  constexpr int kIdle = 3, kWaiting = 4, kFields = 8;
  ProcessorTicks ticks;
  for (int field = 0; field < kFields; ++field) {
    const std::uint64_t count = number_of(take_word(line)).value_or(0);
    ticks.total += count;
    if (field == kIdle || field == kWaiting) ticks.idle += count;
  }
  return ticks;
}

}  // namespace

std::optional<ProcessorTicks> ticks_of_stat(std::string_view text, const std::vector<unsigned>& allowed) {
  std::optional<ProcessorTicks> sum;
  while (text.starts_with("cpu")) {
    std::string_view line = take_line(text);
    std::string_view name = take_word(line);
    name.remove_prefix(3);
    const auto number = number_of<unsigned>(name);
    if (!number || !std::binary_search(allowed.begin(), allowed.end(), *number)) continue;
    const ProcessorTicks ticks = ticks_of_line(line);
    if (!sum) sum.emplace();
    sum->idle += ticks.idle;
    sum->total += ticks.total;
  }
  return sum;
}

std::optional<DurationNs> throttled_of(std::string_view cpu_stat) {
  while (!cpu_stat.empty()) {
    std::string_view line = take_line(cpu_stat);
    const std::string_view name = take_word(line);
    const auto number = number_of<std::int64_t>(take_word(line));
    if (!number) continue;
    if (name == "throttled_usec") return microseconds(*number);
    if (name == "throttled_time") return DurationNs{*number};
  }
  return std::nullopt;
}

std::vector<std::string> cpu_stat_files(std::string_view own_cgroups, const std::string& root) {
  std::vector<std::string> first, second;
  while (!own_cgroups.empty()) {
    std::string_view line = take_line(own_cgroups);
    line.remove_prefix(std::min(line.size(), line.find(':') + 1));
    const std::string_view controllers = line.substr(0, line.find(':'));
    const std::string path{line.substr(std::min(line.size(), controllers.size() + 1))};
    const std::string below = path == "/" ? "" : path;
    const auto add = [&](const std::string& mount) {
      first.push_back(mount + below + "/cpu.stat");
      // A container may see its own cgroup as the root, under the name it has outside.
      if (!below.empty()) second.push_back(mount + "/cpu.stat");
    };
    if (controllers.empty()) {
      add(root);
      add(root + "/unified");
      continue;
    }
    const std::string padded = "," + std::string{controllers} + ",";
    if (padded.find(",cpu,") == std::string::npos) continue;
    add(root + "/cpu");
    if (controllers != "cpu") add(root + "/" + std::string{controllers});
  }
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Processors::Processors(std::string proc, std::string cgroups)
    : proc_{std::move(proc)}, allowed_{allowed_processors()} {
  ProcFile<4096> file;
  for (const std::string& candidate : cpu_stat_files(file.read((proc_ + "/self/cgroup").c_str()), cgroups)) {
    ProcFile<4096> stat;
    if (!throttled_of(stat.read(candidate.c_str()))) continue;
    cpu_stat_ = candidate;
    break;
  }
}

std::optional<ProcessorTicks> Processors::read_ticks() const {
  ProcFile<32 * 1024> file;
  return ticks_of_stat(file.read((proc_ + "/stat").c_str()), allowed_);
}

std::optional<DurationNs> Processors::read_throttled() const {
  if (cpu_stat_.empty()) return std::nullopt;
  ProcFile<4096> file;
  return throttled_of(file.read(cpu_stat_.c_str()));
}

const ProcessorsLook& Processors::look(TimePoint at) {
  // After a long pause the difference would tell of that pause.
  const bool stale = looked_at_ == kTimeMin || at - looked_at_ > seconds(1);
  if (!stale && at - looked_at_ < kPeriod) return found_;
  looked_at_ = at;
  const auto ticks = read_ticks();
  const auto throttled = read_throttled();
  const auto ticks_before = std::exchange(ticks_, ticks);
  const auto throttled_before = std::exchange(throttled_, throttled);
  found_ = {};
  if (stale) return found_;
  if (throttled && throttled_before) found_.throttled = *throttled > *throttled_before;
  if (ticks && ticks_before && ticks->total >= ticks_before->total + kTicksNeeded && ticks->idle >= ticks_before->idle) {
    found_.known = true;
    found_.full = (ticks->idle - ticks_before->idle) * 10 < ticks->total - ticks_before->total;
  }
  // A quota that is used up leaves no room, whatever the processors do for others.
  if (found_.throttled) found_.known = found_.full = true;
  return found_;
}

}  // namespace gpudiag
