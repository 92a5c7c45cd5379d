// SPDX-License-Identifier: Apache-2.0
#include "session/outputs.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "report/ledger_json.hpp"

namespace gpudiag {
namespace {

// Of a recording that waits for the GPU to be used.
constexpr std::size_t kWaitingBytes = 1u << 20;

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
  c.opened_by = static_cast<std::int32_t>(ledger.opened_by);
  c.phase = static_cast<std::int32_t>(ledger.phase);
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
    if (queueing_) {
      if (queue_.size() == kQueued) queue_.pop_front();
      queue_.push_back(copy);
      came_.notify_one();
    }
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

std::size_t LatestIteration::take(gpudiag_iteration* into, std::size_t capacity, int timeout_ms) {
  std::unique_lock lock{mutex_};
  if (capacity == 0) {
    queueing_ = timeout_ms >= 0;
    if (!queueing_) queue_.clear();
    came_.notify_all();
    return 0;
  }
  if (into == nullptr || into->size < sizeof into->size) return 0;
  const std::size_t stride = into->size;
  const std::size_t size = std::min(stride, sizeof(gpudiag_iteration));
  if (timeout_ms > 0)
    came_.wait_for(lock, std::chrono::milliseconds{timeout_ms}, [this] { return !queueing_ || !queue_.empty(); });
  const std::size_t count = std::min(capacity, queue_.size());
  for (std::size_t i = 0; i < count; ++i) {
    gpudiag_iteration& one = queue_[i];
    one.size = size;
    std::memcpy(reinterpret_cast<std::byte*>(into) + i * stride, &one, size);
  }
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

Outputs::Outputs(const Settings& settings, const SessionInfo& info, LatestIteration& latest)
    : rank_{info.rank},
      log_{settings.log},
      pacer_{info.rank, settings.log == LogMode::kEvery, [this](const std::string& line) { print(line); }},
      latest_{latest} {
  if (!settings.log_file.empty() && !log_file_.open(settings.log_file, false)) {
    complain(fmt::format("GPUDIAG_LOG={}: cannot be written ({}); using stderr", settings.log_file, reason(errno)));
  }
  if (!settings.dir.empty()) prepare_files(settings, info);
  latest_.recent().begin(info);
  json(session_start_json(info));
}

void Outputs::prepare_files(const Settings& settings, const SessionInfo& info) {
  if (!make_folders(settings.dir)) {
    complain(fmt::format("GPUDIAG_DIR={}: cannot be made ({}); no files are written", settings.dir, reason(errno)));
    return;
  }
  // The job may change its folder before the GPU is used.
  std::error_code ignored;
  const auto whole = std::filesystem::absolute(settings.dir, ignored);
  dir_ = ignored ? settings.dir : whole.string();
  pid_ = info.pid;
  record_ = settings.record;
}

void Outputs::open_files() {
  opened_ = true;
  const std::string dir = std::exchange(dir_, {});
  // A process that starts a second session gets a second pair of files.
  for (int attempt = 1; attempt < 10'000; ++attempt) {
    const std::string suffix = attempt == 1 ? "" : fmt::format(".{}", attempt);
    const std::string stem = fmt::format("{}/rank{}.pid{}{}", dir, rank_, pid_, suffix);
    if (json_file_.open(stem + ".jsonl", true)) {
      stem_ = stem;
      if (record_ && !recording_.open(stem + ".gpudiag", true)) {
        complain(fmt::format("{}: cannot be written ({}); recording nothing", recording_.path(), reason(errno)));
        record_ = false;
      }
      return;
    }
    if (errno != EEXIST) break;
  }
  record_ = false;
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
  if (json_wanted()) json_text_.append(line).push_back('\n');
}

void Outputs::iteration(const IterationLedger& ledger, TimePoint now) {
  ++iterations_;
  used_ = true;
  if (json_wanted()) json(iteration_json(ledger, rank_));
  if (log_ != LogMode::kOff) pacer_.add(ledger, now);
  latest_.recent().add(ledger);
  latest_.set(ledger, rank_);
}

void Outputs::begin_summary(RankIdentity who) {
  if (json_wanted()) ranks_ = std::make_unique<RankFiles>(std::move(who), place_of);
}

void Outputs::summary(const IterationLedger& ledger, std::span<const CollectiveUse> uses,
                      std::span<const CollectiveInfo> abouts) {
  if (ranks_) ranks_->add(ledger, uses, abouts);
}

bool Outputs::record(std::string_view bytes) {
  if (!opened_) {
    record_bytes_ += bytes;
    used_ = used_ || record_bytes_.size() > kWaitingBytes;
    return true;
  }
  if (!record_) return false;
  const bool was_good = recording_.good();
  errno = 0;
  if (recording_.append(bytes)) return true;
  if (was_good) say(why_it_ended(recording_));
  return false;
}

void Outputs::device(const DeviceInfo& device) {
  used_ = true;
  latest_.recent().add_device(device);
  json(session_device_json(rank_, device));
}

void Outputs::note(const SessionNote& note, bool tell) {
  used_ = used_ || tell;  // what the user must know stands in the files too
  latest_.recent().add_note(note);
  json(session_note_json(rank_, note));
  if (tell) say(note.text);
}

void Outputs::quality(TimePoint at, const Quality& quality) {
  latest_.recent().set_quality(quality);
  if (opened_) json(session_quality_json(rank_, at, quality));
}

void Outputs::end(const SessionEnd& end) {
  pacer_.flush();
  latest_.recent().set_quality(end.quality);
  json(session_end_json(rank_, end));
  if (ranks_) ranks_->finish();
  flush();
}

void Outputs::say(std::string_view text) { print(fmt::format("gpudiag rank {} {}", rank_, text)); }

void Outputs::flush() {
  if (!dir_.empty() && used_) {
    open_files();
    if (const std::string bytes = std::exchange(record_bytes_, {}); !bytes.empty()) record(bytes);
  }
  if (ranks_)
    if (const std::string trouble = ranks_->flush(stem_); !trouble.empty()) say(trouble);
  if (json_text_.empty() || !opened_) return;
  const bool was_good = json_file_.good();
  errno = 0;
  if (!json_file_.append(json_text_) && was_good) say(why_it_ended(json_file_));
  json_text_.clear();
}

}  // namespace gpudiag
