// SPDX-License-Identifier: Apache-2.0
#include "session/outputs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "fmt/format.h"
#include "report/ledger_json.hpp"

namespace gpudiag {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// After an append() that failed. errno was 0 before it: where it still is, the descriptor is no longer
/// our file's.
std::string why_it_ended(const AppendFile& file) {
  return fmt::format("{}: cannot be written any more ({})", file.path(),
                     errno == 0 || errno == EBADF ? "the job has closed it" : reason(errno));
}

gpudiag_iteration as_c(const IterationLedger& ledger, std::uint32_t rank) {
  gpudiag_iteration c{};
  c.size = sizeof c;
  c.index = ledger.index;
  c.rank = static_cast<std::int32_t>(rank);
  c.device = raw(ledger.device);
  c.valid = ledger.valid() ? 1 : 0;
  c.partial = ledger.partial ? 1 : 0;
  c.wall_ns = ledger.wall.ns;
  c.compute_ns = ledger.compute.ns;
  c.communication_ns = ledger.communication.ns;
  c.copy_ns = ledger.copy.ns;
  c.idle_ns = ledger.idle.ns;
  static_assert(kCauseCount == GPUDIAG_CAUSE_COUNT);
  for (std::size_t i = 0; i < kCauseCount; ++i) c.idle_by_cause_ns[i] = ledger.idle_by_cause[i].ns;
  c.own_ns = ledger.own.ns;
  return c;
}

}  // namespace

void LatestIteration::set(const IterationLedger& ledger, std::uint32_t rank) {
  gpudiag_iteration_callback callback = nullptr;
  void* user = nullptr;
  gpudiag_iteration copy{};
  {
    const std::lock_guard lock{mutex_};
    latest_ = copy = as_c(ledger, rank);
    callback = callback_;
    user = user_;
  }
  if (callback == nullptr) return;
  try {
    callback(&copy, user);  // outside the lock: it may call gpudiag_last()
  } catch (...) {           // a C++ program's; its failure must not end the job on our thread
  }
}

bool LatestIteration::get(gpudiag_iteration& into) const {
  const std::lock_guard lock{mutex_};
  if (!latest_ || into.size < sizeof into.size) return false;
  const std::size_t size = std::min(into.size, sizeof *latest_);
  std::memcpy(&into, &*latest_, size);
  into.size = size;
  return true;
}

void LatestIteration::set_callback(gpudiag_iteration_callback callback, void* user) {
  const std::lock_guard lock{mutex_};
  callback_ = callback;
  user_ = user;
}

Outputs::Outputs(const Settings& settings, const SessionInfo& info, LatestIteration& latest)
    : rank_{info.rank},
      log_{settings.log},
      pacer_{info.rank, settings.log == LogMode::kEvery, [this](const std::string& line) { print(line); }},
      latest_{latest} {
  if (!settings.log_file.empty() && !log_file_.open(settings.log_file, false)) {
    complain(fmt::format("GPUDIAG_LOG={}: cannot be written ({}); using stderr", settings.log_file, reason(errno)));
  }
  if (!settings.dir.empty()) open_files(settings, info);
  json(session_start_json(info));
}

void Outputs::open_files(const Settings& settings, const SessionInfo& info) {
  if (!make_folders(settings.dir)) {
    complain(fmt::format("GPUDIAG_DIR={}: cannot be made ({}); no files are written", settings.dir, reason(errno)));
    return;
  }
  // A process that starts a second session gets a second pair of files.
  for (int attempt = 1; attempt < 10'000; ++attempt) {
    const std::string suffix = attempt == 1 ? "" : fmt::format(".{}", attempt);
    const std::string stem = fmt::format("{}/rank{}.pid{}{}", settings.dir, info.rank, info.pid, suffix);
    if (json_file_.open(stem + ".jsonl", true)) {
      if (settings.record && !recording_.open(stem + ".gpudiag", true))
        complain(fmt::format("{}: cannot be written ({}); recording nothing", recording_.path(), reason(errno)));
      return;
    }
    if (errno != EEXIST) break;
  }
  complain(fmt::format("{}: cannot be written ({}); no files are written", json_file_.path(), reason(errno)));
}

void Outputs::print(const std::string& line) {
  if (log_ == LogMode::kOff) return;
  const bool was_good = log_file_.is_open() && log_file_.good();
  errno = 0;
  if (was_good && log_file_.append(line + '\n')) return;
  if (was_good) stderr_.write(fmt::format("gpudiag {}; using stderr", why_it_ended(log_file_)));
  stderr_.write(line);
}

void Outputs::json(const std::string& line) {
  if (json_file_.is_open()) json_text_.append(line).push_back('\n');
}

void Outputs::iteration(const IterationLedger& ledger, TimePoint now) {
  ++iterations_;
  if (json_file_.is_open()) json(iteration_json(ledger, rank_));
  if (log_ != LogMode::kOff) pacer_.add(ledger, now);
  latest_.set(ledger, rank_);
}

bool Outputs::record(std::string_view bytes) {
  const bool was_good = recording_.good();
  errno = 0;
  if (recording_.append(bytes)) return true;
  if (was_good) say(why_it_ended(recording_));
  return false;
}

void Outputs::device(const DeviceInfo& device) { json(session_device_json(rank_, device)); }

void Outputs::note(const SessionNote& note, bool tell) {
  json(session_note_json(rank_, note));
  if (tell) say(note.text);
}

void Outputs::quality(TimePoint at, const Quality& quality) { json(session_quality_json(rank_, at, quality)); }

void Outputs::end(const SessionEnd& end) {
  pacer_.flush();
  json(session_end_json(rank_, end));
  flush();
}

void Outputs::say(std::string_view text) { print(fmt::format("gpudiag rank {} {}", rank_, text)); }

void Outputs::flush() {
  if (json_text_.empty()) return;
  const bool was_good = json_file_.good();
  errno = 0;
  if (!json_file_.append(json_text_) && was_good) say(why_it_ended(json_file_));
  json_text_.clear();
}

}  // namespace gpudiag
