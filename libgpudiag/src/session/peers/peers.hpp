// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: the ranks of one job, while it runs.
// This rank among the others: once a second it shows them its state, and rank 0 reads what all have
// shown. docs/collectives.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/options.hpp"
#include "session/peers/peer_link.hpp"
#include "session/peers/peer_memory.hpp"
#include "session/peers/peer_state.hpp"
#include "session/peers/peer_watch.hpp"

namespace gpudiag {

/// Who this rank is in its job, by its launcher's variables. Nothing where it is alone, or nothing tells
/// this job from another one on the host.
std::optional<RankIdentity> identity_of_launcher(const OptionSource& environment, std::uint32_t rank);

/// Not thread-safe: the drain thread owns it. Nothing here waits for another rank.
class Peers {
 public:
  /// `who` as of identity_of_launcher(), with what else is known.
  Peers(const Settings& settings, RankIdentity who);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Once a second: `fill` makes this rank's state, whose identity and times are put in here. What there
  /// is to say, on rank 0.
  std::vector<PeerLine> tick(TimePoint now, const std::function<PeerState()>& fill);
  /// The last state, of a session that ends in order.
  void leave(TimePoint now, PeerState state);

  static constexpr DurationNs kPeriod = seconds(1);

 private:
  struct Heard {
    PeerState state;
    TimePoint at;  ///< on this session's clock
  };
  void open();
  void publish(TimePoint now, PeerState state);
  void hear(TimePoint now);
  std::vector<PeerView> views(TimePoint now) const;

  std::string address_;  ///< empty: this host alone
  RankIdentity who_;
  bool opened_ = false;
  TimePoint due_ = kTimeMin;
  std::unique_ptr<PeerMemory> memory_;
  std::unique_ptr<PeerListener> listener_;
  std::unique_ptr<PeerSender> sender_;
  std::map<std::uint32_t, Heard> heard_;  ///< by rank; rank 0 has all
  PeerWatch watch_;
  std::vector<PeerLine> to_say_;
};

}  // namespace gpudiag
