// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// What a program can ask for while it runs: the report of the latest iterations, out of bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "attribution/ledger.hpp"
#include "report/session_json.hpp"

namespace gpudiag {

/// Keeps the newest iterations of one session, and of the one before until the next begins. [any thread]
class RecentRun {
 public:
  void begin(const SessionInfo& info);
  void add(const IterationLedger& ledger);
  void add_device(const DeviceInfo& device);
  void add_note(const SessionNote& note);
  void set_quality(const Quality& quality);

  /// `gpudiag.report/1` of what is kept; iterations before that are left out, which a note says.
  std::string report() const;

  /// Bytes of iterations that are kept, some 500 each.
  static constexpr std::size_t kKeptBytes = 2u << 20;
  static constexpr std::size_t kNotesKept = 64;

 private:
  mutable std::mutex mutex_;
  SessionInfo info_;
  std::map<DeviceId, DeviceInfo> devices_;
  std::vector<SessionNote> notes_;
  Quality quality_;
  std::deque<std::string> ledgers_;  // by append_ledger()
  std::size_t bytes_ = 0;
  std::uint64_t forgotten_ = 0;
};

}  // namespace gpudiag
