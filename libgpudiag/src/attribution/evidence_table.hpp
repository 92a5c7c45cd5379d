// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Evidence of one iteration, summed by cause, sub-cause, name and thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attribution/ledger.hpp"
#include "record/names.hpp"

namespace gpudiag {

/// Stands for our own code where a name of the job's would stand.
inline constexpr NameId kOwnCode{0xffffffffu};
/// What evidence of it is called.
inline constexpr std::string_view kOwnCodeText = "gpudiag";

/// What evidence is summed by. `thread` as the record gives it; `inside`, of calls that are evidence
/// by themselves: the innermost long range or operator around them, which says whose call it was.
struct EvidenceKey {
  Cause cause = Cause::kUnknown;
  SubCause sub_cause = SubCause::kNone;
  NameId name{};
  ThreadId thread{};
  NameId inside = kNoName;
  CopyKind copy = CopyKind::kUnknown;  ///< of a copy that held its caller up, and of the wait behind it
  bool pageable = false;               ///< it was of pageable memory

  bool operator==(const EvidenceKey&) const = default;
};

/// At most kKinds kinds; what comes later is summed without its name, so that a job with endlessly
/// many names stays bounded.
class EvidenceTable {
 public:
  static constexpr std::size_t kKinds = 256;

  /// `count`: 0 for what goes on with the piece before.
  void add_host(const EvidenceKey& key, TimePoint start, DurationNs length, std::uint64_t count = 1);
  void add_bytes(const EvidenceKey& key, std::uint64_t bytes) { entry(key).bytes += bytes; }
  void add_charge(const EvidenceKey& key, DurationNs charged);
  void merge(const EvidenceTable& other);
  void clear() { entries_.clear(); last_ = 0; }
  bool empty() const { return entries_.empty(); }

  /// Calls `visit(cause, sub_cause, host_time)` for each kind.
  template <typename Visit>
  void for_each_host(Visit visit) const {
    for (const Entry& kind : entries_) visit(kind.key.cause, kind.key.sub_cause, kind.host);
  }

  /// The kEvidenceKept kinds with the most charged time (then host time), falling.
  std::vector<Evidence> top(const NameTable& names) const;

 private:
  struct Entry {
    EvidenceKey key;
    std::uint64_t count = 0;
    DurationNs host;
    DurationNs charged;
    DurationNs longest;
    TimePoint longest_at;
    std::uint64_t bytes = 0;
  };
  Entry& entry(EvidenceKey key);

  std::vector<Entry> entries_;
  std::size_t last_ = 0;
};

}  // namespace gpudiag
