// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "fmt/format.h"

namespace gpudiag {
namespace {

constexpr std::uint32_t kMostRanks = 1u << 16;

constexpr std::array<std::string_view, 4> kSizeVariables{"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"};
constexpr std::array<std::string_view, 4> kLocalVariables{"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                                          "MPI_LOCALRANKID"};
// What tells one job of a host from another.
constexpr std::array<std::string_view, 7> kJobVariables{"MASTER_ADDR",   "MASTER_PORT",    "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID",
                                                        "SLURM_STEP_ID", "PMIX_NAMESPACE", "PMI_JOBID"};
// Where none of them is there: one run of `gpudiag run`.
constexpr std::string_view kRunVariable = "GPUDIAG_DIR";
constexpr std::string_view kRestartVariable = "TORCHELASTIC_RESTART_COUNT";

std::optional<std::uint32_t> number_of(const OptionSource& environment, std::string_view name) {
  const auto text = environment(name);
  std::uint32_t number = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return number;
}

template <typename Names>
std::optional<std::uint32_t> first_of(const OptionSource& environment, const Names& names) {
  for (const std::string_view name : names)
    if (const auto number = number_of(environment, name)) return number;
  return std::nullopt;
}

}  // namespace

std::optional<RankIdentity> identity_of_launcher(const OptionSource& environment, std::uint32_t rank) {
  RankIdentity who;
  who.rank = rank;
  who.world_size = first_of(environment, kSizeVariables).value_or(0);
  who.local_rank = first_of(environment, kLocalVariables).value_or(kNoRank);
  who.restart = number_of(environment, kRestartVariable).value_or(0);
  if (who.world_size < 2 || who.world_size > kMostRanks || rank >= who.world_size) return std::nullopt;
  for (const std::string_view name : kJobVariables)
    if (const auto value = environment(name); value && !value->empty()) who.job += fmt::format("{}={};", name, *value);
  if (const auto run = environment(kRunVariable); who.job.empty() && run && !run->empty()) who.job = *run;
  if (who.job.empty()) return std::nullopt;
  return who;
}

Peers::Peers(const Settings& settings, RankIdentity who)
    : address_{settings.peers}, who_{std::move(who)}, watch_{settings.stuck_after} {}

Peers::~Peers() = default;

// On the thread that owns us: what is made here may make threads, which are to have its signal mask.
void Peers::open() {
  opened_ = true;
  PeerMemory::remove_orphans();
  std::string error;
  const std::string key = fmt::format("{}restart={};size={}", who_.job, who_.restart, who_.world_size);
  memory_ = PeerMemory::open(peer_memory_name(key), who_.world_size, who_.rank, error);
  if (memory_ == nullptr)
    to_say_.push_back({"peers_apart", fmt::format("the other ranks of this host are not seen: {}", error), false});
  if (address_.empty()) return;
  if (who_.rank != 0) {
    sender_ = std::make_unique<PeerSender>(address_);
    return;
  }
  listener_ = PeerListener::open(address_, error);
  if (listener_ == nullptr)
    to_say_.push_back({"peers_apart", fmt::format("GPUDIAG_PEERS={}: ranks of other hosts are not heard: {}", address_, error), false});
}

void Peers::publish(TimePoint now, PeerState state) {
  state.summary.who = who_;
  state.at = now;
  const std::string bytes = encode(state);
  if (memory_ != nullptr) memory_->write(bytes);
  if (who_.rank == 0) heard_[0] = {std::move(state), now};
  if (sender_ == nullptr) return;
  // One of a host speaks for all of it, unless rank 0 is there and sees them itself.
  const std::vector<std::uint32_t> here = memory_ == nullptr ? std::vector{who_.rank} : memory_->present();
  if (!here.empty() && here.front() == 0) return;
  const auto speaker = std::find_if(here.begin(), here.end(), [this](std::uint32_t rank) { return rank == who_.rank || memory_->lives(rank); });
  if (speaker == here.end() || *speaker != who_.rank) return;
  for (const std::uint32_t rank : here) {
    if (rank == who_.rank) sender_->send(bytes);
    else if (const auto other = memory_->read(rank)) sender_->send(*other);
  }
}

void Peers::hear(TimePoint now) {
  const auto take = [&](const std::string& bytes, bool same_clock) {
    auto state = decode_peer(bytes);
    if (!state || state->summary.who.job != who_.job || state->summary.who.restart != who_.restart) return;
    const std::uint32_t rank = state->summary.who.rank;
    if (rank >= who_.world_size || rank == who_.rank) return;
    Heard& heard = heard_[rank];
    // A state that has been passed on again says nothing new of its rank.
    const bool fresh = heard.state.at != state->at || heard.at == TimePoint{};
    const TimePoint at = same_clock ? std::min(state->at, now) : fresh ? now : heard.at;
    heard = {*std::move(state), at};
  };
  if (memory_ != nullptr)
    for (const std::uint32_t rank : memory_->present())
      if (const auto bytes = memory_->read(rank)) take(*bytes, true);
  if (listener_ != nullptr)
    for (const std::string& bytes : listener_->take()) take(bytes, false);
}

std::vector<PeerView> Peers::views(TimePoint now) const {
  std::vector<std::uint32_t> here;
  if (memory_ != nullptr) here = memory_->present();
  std::vector<PeerView> views;
  for (const auto& [rank, heard] : heard_) {
    PeerView view{heard.state, now - heard.at, true};
    const bool local = std::binary_search(here.begin(), here.end(), rank);
    if (local && rank != who_.rank && !view.state.left) view.lives = memory_->lives(rank);
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<PeerLine> Peers::tick(TimePoint now, const std::function<PeerState()>& fill) {
  if (now < due_) return {};
  due_ = now + kPeriod;
  if (!opened_) open();
  publish(now, fill());
  if (who_.rank == 0) {
    hear(now);
    for (PeerLine& line : watch_.update(views(now), now)) to_say_.push_back(std::move(line));
  }
  return std::exchange(to_say_, {});
}

void Peers::leave(TimePoint now, PeerState state) {
  if (!opened_) return;
  state.left = true;
  publish(now, std::move(state));
  memory_.reset();
}

}  // namespace gpudiag
