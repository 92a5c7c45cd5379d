// SPDX-License-Identifier: Apache-2.0
#include "session/recent_run.hpp"

#include <string_view>
#include <utility>

#include "attribution/findings.hpp"
#include "fmt/format.h"
#include "report/ledger_spool.hpp"
#include "report/rank_collector.hpp"
#include "report/reporter.hpp"

namespace gpudiag {

void RecentRun::begin(const SessionInfo& info) {
  const std::lock_guard lock{mutex_};
  info_ = info;
  devices_.clear();
  notes_.clear();
  quality_ = {};
  ledgers_.clear();
  bytes_ = 0;
  forgotten_ = 0;
}

void RecentRun::add(const IterationLedger& ledger) {
  std::string text;
  append_ledger(text, ledger);
  const std::lock_guard lock{mutex_};
  bytes_ += text.size();
  ledgers_.push_back(std::move(text));
  while (bytes_ > kKeptBytes) {
    bytes_ -= ledgers_.front().size();
    ledgers_.pop_front();
    ++forgotten_;
  }
}

void RecentRun::add_device(const DeviceInfo& device) {
  const std::lock_guard lock{mutex_};
  devices_[device.device] = device;
}

void RecentRun::add_note(const SessionNote& note) {
  const std::lock_guard lock{mutex_};
  if (notes_.size() < kNotesKept) notes_.push_back(note);
}

void RecentRun::set_quality(const Quality& quality) {
  const std::lock_guard lock{mutex_};
  quality_ = quality;
}

std::string RecentRun::report() const {
  const std::lock_guard lock{mutex_};
  RankCollector rank{info_};
  for (const auto& [id, device] : devices_) rank.add_device(device);
  for (const SessionNote& note : notes_) rank.add_note(note);
  if (forgotten_ > 0)
    rank.add_note({{}, "recent_only", fmt::format("the first {} iterations are left out", forgotten_)});
  rank.set_quality(quality_);
  for (const std::string& text : ledgers_) {
    std::string_view bytes{text};
    if (const auto ledger = take_ledger(bytes)) rank.add(*ledger);
  }
  rank.close();
  std::string json;
  const auto reporter = make_json_reporter([&](std::string_view text) { json += text; });
  reporter->begin();
  reporter->rank(rank);
  const std::vector<RankBasis> bases{rank.basis()};
  reporter->end(diagnose(bases));
  return json;
}

}  // namespace gpudiag
