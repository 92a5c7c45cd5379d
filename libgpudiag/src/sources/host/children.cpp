// SPDX-License-Identifier: Apache-2.0
#include "sources/host/children.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "sources/host/now.hpp"
#include "sources/host/proc_file.hpp"
#include "sources/host/thread_look.hpp"

namespace gpudiag {
namespace {

// Births are known to 10 ms.
constexpr DurationNs kSettled = milliseconds(30);

std::string link_of(const std::string& path) {
  char target[4096];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length > 0 ? std::string{target, static_cast<std::size_t>(length)} : std::string{};
}

/// Processes are stamped with a clock that goes on while the machine is suspended, ours stands still.
TimePoint born_at(std::uint64_t ticks) {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  const TimePoint booted = now() - DurationNs{std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
  const std::int64_t per_second = std::max(1L, sysconf(_SC_CLK_TCK));
  return booted + DurationNs{static_cast<std::int64_t>(ticks) * (1'000'000'000 / per_second)};
}

}  // namespace

std::vector<std::uint32_t> children_of(std::string_view text) {
  std::vector<std::uint32_t> found;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text))
    if (const auto pid = number_of<std::uint32_t>(word)) found.push_back(*pid);
  return found;
}

// Python's own helpers run the same program too: one that keeps track of shared memory, one that forks.
// They only wait, so whoever judges workers sees them as such.
bool Children::is_worker(std::uint32_t pid) const {
  return !own_program_.empty() && link_of(proc_ + "/" + std::to_string(pid) + "/exe") == own_program_;
}

// Null: too young. What is about to run another program still runs ours.
const Children::Known* Children::know(std::uint32_t pid) {
  ProcFile<1024> file;
  const std::string folder = proc_ + "/" + std::to_string(pid);
  const auto known =
      std::find_if(known_.begin(), known_.end(), [&](const Known& other) { return other.child.pid == pid; });
  if (known != known_.end()) return &*known;
  Known met;
  met.child.pid = pid;
  met.child.born = now();
  if (const auto ticks = birth_of_stat(file.read((folder + "/stat").c_str()))) met.child.born = born_at(*ticks);
  if (now() - met.child.born < kSettled) return nullptr;
  met.worker = is_worker(pid);
  known_.push_back(met);
  return &known_.back();
}

std::optional<std::vector<Child>> Children::list(const std::vector<std::uint32_t>& threads) {
  if (own_program_.empty()) own_program_ = link_of(proc_ + "/self/exe");
  std::vector<std::uint32_t> asked = threads;
  const auto first = static_cast<std::uint32_t>(getpid());
  if (std::find(asked.begin(), asked.end(), first) == asked.end()) asked.push_back(first);
  std::vector<std::uint32_t> pids;
  bool readable = false;
  for (const std::uint32_t thread : asked) {
    ProcFile<8192> file;
    const std::string path = proc_ + "/self/task/" + std::to_string(thread) + "/children";
    // A thread without children has an empty file; one that cannot be opened is another matter.
    if (access(path.c_str(), R_OK) != 0) continue;
    readable = true;
    for (const std::uint32_t pid : children_of(file.read(path.c_str()))) pids.push_back(pid);
  }
  if (!readable) return std::nullopt;
  std::erase_if(known_, [&](const Known& known) {
    return std::find(pids.begin(), pids.end(), known.child.pid) == pids.end();
  });
  std::vector<Child> workers;
  for (const std::uint32_t pid : pids) {
    if (workers.size() == kMost) break;
    if (const Known* known = know(pid); known != nullptr && known->worker) workers.push_back(known->child);
  }
  return workers;
}

}  // namespace gpudiag
