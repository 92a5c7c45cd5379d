// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_spool.hpp"

#include <array>

#include "record/record_codec.hpp"

namespace gpudiag {
namespace {

// Writes and reads the same fields in the same order, so that the two cannot drift apart.
struct Writing {
  std::string& out;

  void number(std::uint64_t value) { append_varint(out, value); }
  template <typename Id>
  void id(const Id& value) { number(static_cast<std::uint64_t>(value)); }
  void time(const std::int64_t& ns) {
    const auto bits = static_cast<std::uint64_t>(ns);
    number((bits << 1) ^ (0 - (bits >> 63)));
  }
  void text(const std::string& value) { append_text(out, value); }
};

struct Reading {
  std::string_view& bytes;
  bool failed = false;

  void number(std::uint64_t& value) {
    const auto taken = take_varint(bytes);
    failed = failed || !taken;
    value = taken.value_or(0);
  }
  template <typename Id>
  void id(Id& value) {
    std::uint64_t bits = 0;
    number(bits);
    value = static_cast<Id>(bits);
  }
  void time(std::int64_t& ns) {
    std::uint64_t bits = 0;
    number(bits);
    ns = static_cast<std::int64_t>((bits >> 1) ^ (0 - (bits & 1)));
  }
  void text(std::string& value) {
    const auto taken = take_text(bytes);
    failed = failed || !taken;
    value = std::string{taken.value_or(std::string_view{})};
  }
};

template <typename Io, typename Maybe>
void optional_time(Io& io, Maybe& maybe) {
  bool known = maybe.has_value();
  io.id(known);
  if (!known) return;
  if constexpr (std::is_same_v<Io, Reading>) maybe.emplace();
  io.time(maybe->ns);
}

template <typename Io, typename E>
void evidence_fields(Io& io, E& evidence) {
  io.id(evidence.cause);
  io.id(evidence.sub_cause);
  io.text(evidence.what);
  io.id(evidence.thread);
  io.number(evidence.count);
  io.time(evidence.host.ns);
  io.time(evidence.charged.ns);
  io.time(evidence.longest_at.ns);
  io.number(evidence.bytes);
}

template <typename Io, typename W>
void what_if_fields(Io& io, W& answer) {
  for (auto& removal : answer.without) {
    io.id(removal.what);
    io.id(removal.sub_cause);
  }
  io.time(answer.saved.ns);
}

template <typename Io, typename Ledger>
void ledger_fields(Io& io, Ledger& l) {
  io.id(l.process);
  io.id(l.device);
  io.number(l.index);
  io.text(l.label);
  io.id(l.opened_by);
  io.id(l.phase);
  io.id(l.partial);
  io.id(l.empty);
  for (auto& count : l.invalid) io.number(count);
  for (auto& count : l.counted_before) io.number(count);
  for (auto* time : {&l.wall, &l.host_step, &l.compute, &l.communication, &l.copy, &l.idle,
                     &l.replay_cost_communication, &l.replay_cost_copy, &l.replay_cost_all_host,
                     &l.communication_total, &l.copy_total, &l.own})
    io.time(time->ns);
  io.time(l.start.ns);
  for (auto& time : l.idle_by_cause) io.time(time.ns);
  for (auto& time : l.replay_cost) io.time(time.ns);
  optional_time(io, l.straggler_wait);
  optional_time(io, l.transfer);
  io.number(l.launches);
  io.number(l.operations);
  io.number(l.opaque_graphs);
}

// A longer list in the bytes is damage.
constexpr std::uint64_t kEvidenceLimit = 4096;
constexpr std::size_t kReadAtOnce = 1 << 20;

}  // namespace

void append_ledger(std::string& out, const IterationLedger& ledger) {
  Writing io{out};
  ledger_fields(io, ledger);
  io.number(ledger.evidence.size());
  for (const Evidence& evidence : ledger.evidence) evidence_fields(io, evidence);
  io.number(ledger.what_if.size());
  for (const WhatIf& answer : ledger.what_if) what_if_fields(io, answer);
}

std::optional<IterationLedger> take_ledger(std::string_view& bytes) {
  Reading io{bytes};
  IterationLedger ledger;
  ledger_fields(io, ledger);
  std::uint64_t count = 0;
  io.number(count);
  if (io.failed || count > kEvidenceLimit) return std::nullopt;
  ledger.evidence.resize(count);
  for (Evidence& evidence : ledger.evidence) evidence_fields(io, evidence);
  io.number(count);
  if (io.failed || count > kEvidenceLimit) return std::nullopt;
  ledger.what_if.resize(count);
  for (WhatIf& answer : ledger.what_if) what_if_fields(io, answer);
  if (io.failed) return std::nullopt;
  return ledger;
}

LedgerSpool::LedgerSpool(std::size_t memory_limit) : memory_limit_{memory_limit} {}
LedgerSpool::~LedgerSpool() = default;
LedgerSpool::LedgerSpool(LedgerSpool&&) noexcept = default;
LedgerSpool& LedgerSpool::operator=(LedgerSpool&&) noexcept = default;

void LedgerSpool::add(const IterationLedger& ledger) {
  std::string one;
  append_ledger(one, ledger);
  append_text(waiting_, one);
  if (waiting_.size() >= memory_limit_ && !file_failed_) spill();
}

void LedgerSpool::spill() {
  if (!file_) file_.reset(std::tmpfile());
  file_failed_ = !file_ || std::fseek(file_.get(), static_cast<long>(in_file_), SEEK_SET) != 0 ||
                 std::fwrite(waiting_.data(), 1, waiting_.size(), file_.get()) != waiting_.size() ||
                 std::fflush(file_.get()) != 0;
  // What a failed write left behind lies past in_file_ and is not read.
  if (file_failed_) return;
  in_file_ += waiting_.size();
  waiting_.clear();
}

void LedgerSpool::visit_one(IterationLedger ledger, const std::function<void(const IterationLedger&)>& visit) const {
  if (const auto wait = waits_.find({ledger.device, ledger.index}); wait != waits_.end()) {
    ledger.straggler_wait = wait->second.straggler_wait;
    ledger.transfer = wait->second.transfer;
  }
  visit(ledger);
}

void LedgerSpool::for_each(const std::function<void(const IterationLedger&)>& visit) const {
  const auto visit_whole = [&](std::string_view& bytes) {
    while (true) {
      std::string_view rest = bytes;
      auto one = take_text(rest);
      if (!one) return;
      bytes = rest;
      if (auto ledger = take_ledger(*one)) visit_one(*std::move(ledger), visit);
    }
  };
  std::string buffer;
  if (file_) std::fseek(file_.get(), 0, SEEK_SET);
  for (std::uint64_t left = in_file_; left > 0;) {
    const std::size_t kept = buffer.size();
    buffer.resize(kept + std::min<std::uint64_t>(left, kReadAtOnce));
    const std::size_t got = std::fread(buffer.data() + kept, 1, buffer.size() - kept, file_.get());
    buffer.resize(kept + got);
    left = got == 0 ? 0 : left - got;
    std::string_view bytes = buffer;
    visit_whole(bytes);
    buffer.erase(0, buffer.size() - bytes.size());
  }
  std::string_view bytes = waiting_;
  visit_whole(bytes);
}

}  // namespace gpudiag
