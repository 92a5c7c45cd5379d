// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// Where the iterations of one rank wait until it is known what to say of them (the warm-up rule
// needs the whole run). In memory while they are few, then in a temporary file without a name.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "attribution/ledger.hpp"

namespace gpudiag {

/// Appends the ledger, every field of it.
void append_ledger(std::string& out, const IterationLedger& ledger);
/// Takes one off the front; none where the bytes are none.
std::optional<IterationLedger> take_ledger(std::string_view& bytes);

/// What the comparison of ranks adds to a ledger, by device and index of the iteration.
struct AddedWait {
  DurationNs straggler_wait;
  DurationNs transfer;
};
using AddedWaits = std::map<std::pair<DeviceId, std::uint64_t>, AddedWait>;

/// Not thread-safe.
class LedgerSpool {
 public:
  /// `memory_limit`: from how many bytes on the file is used.
  explicit LedgerSpool(std::size_t memory_limit = 4 << 20);
  ~LedgerSpool();
  LedgerSpool(LedgerSpool&&) noexcept;
  LedgerSpool& operator=(LedgerSpool&&) noexcept;

  void add(const IterationLedger& ledger);
  /// Known later than the ledgers: for_each() puts them in.
  void set_waits(AddedWaits waits) { waits_ = std::move(waits); }
  /// In order of add(). May be called again.
  void for_each(const std::function<void(const IterationLedger&)>& visit) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void spill();

  void visit_one(IterationLedger ledger, const std::function<void(const IterationLedger&)>& visit) const;

  std::size_t memory_limit_;
  AddedWaits waits_;
  std::string waiting_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t in_file_ = 0;
  bool file_failed_ = false;  // then all stays in memory
};

}  // namespace gpudiag
