// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_state.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "record/crc32.hpp"

namespace gpudiag {
namespace {

// Changes with the form.
constexpr std::uint32_t kForm = 0x67706401;
constexpr std::size_t kLongestText = 512;
constexpr std::size_t kMostItems = 1u << 16;

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    value = value.substr(0, kLongestText);
    number(static_cast<std::uint16_t>(value.size()));
    bytes_ += value;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_{bytes} {}
  template <typename Number>
  void number(Number& value) {
    if (bytes_.size() < sizeof value) return fail();
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  void text(std::string& value) {
    std::uint16_t size = 0;
    number(size);
    if (bytes_.size() < size || size > kLongestText) return fail();
    value = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  /// A count of things that follow.
  std::size_t count() {
    std::uint32_t value = 0;
    number(value);
    if (value > kMostItems || value > bytes_.size()) fail();
    return good_ ? value : 0;
  }
  void fail() {
    good_ = false;
    bytes_ = {};
  }
  bool good() const { return good_; }
  bool whole() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

// Both directions in one place, so that they cannot differ.
template <typename Io>
void identity(Io& io, auto& who) {
  io.number(who.rank);
  io.number(who.world_size);
  io.number(who.local_rank);
  io.number(who.pid);
  io.number(who.origin_unix_ns);
  io.number(who.restart);
  io.text(who.job);
  io.text(who.host);
}

template <typename Io>
void iteration_fields(Io& io, auto& iteration) {
  io.number(iteration.index);
  io.number(iteration.phase);
  io.number(iteration.partial);
  io.number(iteration.valid);
  io.number(iteration.start);
  io.number(iteration.wall);
  io.number(iteration.compute);
  io.number(iteration.communication);
  io.number(iteration.copy);
  io.number(iteration.idle);
  io.number(iteration.idle_by_cause);
  io.number(iteration.sub_causes);
  io.number(iteration.left_out);
}

template <typename Io>
void group_fields(Io& io, auto& group) {
  io.text(group.group);
  io.text(group.newest);
  io.number(group.group_size);
  io.number(group.rank_in_group);
  io.number(group.called);
  io.number(group.waiting);
}

/// Enumerators that came from elsewhere.
bool sound(const RankIteration& iteration) {
  if (static_cast<std::size_t>(iteration.phase) >= kPhaseNames.size()) return false;
  return std::all_of(iteration.sub_causes.begin(), iteration.sub_causes.end(), [](SubCause sub) {
    return static_cast<std::size_t>(sub) < kSubCauseNames.size();
  });
}

std::string encode_newest(const PeerState& state, std::size_t iterations) {
  const RankSummary& summary = state.summary;
  Writer out;
  out.number(kForm);
  identity(out, summary.who);
  out.number(state.at);
  out.text(state.doing);
  out.number(state.doing_for);
  out.number(state.left);
  out.number(static_cast<std::uint32_t>(state.groups.size()));
  for (const GroupProgress& group : state.groups) group_fields(out, group);
  out.number(static_cast<std::uint32_t>(summary.abouts.size()));
  for (const CollectiveInfo& about : summary.abouts) out.text(text_of(about));
  out.number(static_cast<std::uint32_t>(iterations));
  for (const RankIteration& iteration : std::span{summary.iterations}.last(iterations)) {
    const auto uses = summary.uses_of(iteration);
    const std::size_t kept = std::min(uses.size(), kPeerUsesKept);
    RankIteration cut = iteration;
    cut.left_out += static_cast<std::uint32_t>(uses.size() - kept);
    iteration_fields(out, cut);
    out.number(static_cast<std::uint32_t>(kept));
    for (const CollectiveUse& use : uses.first(kept)) out.number(use);
  }
  std::string bytes = out.take();
  const std::uint32_t check = crc32(bytes);
  bytes.append(reinterpret_cast<const char*>(&check), sizeof check);
  return bytes;
}

}  // namespace

CollectiveKind kind_of(const GroupProgress& progress, std::uint64_t number) {
  const std::uint64_t first = progress.called - std::min<std::uint64_t>(progress.called, progress.newest.size());
  if (number < first || number >= progress.called) return CollectiveKind::kUnknown;
  const auto kind = static_cast<std::size_t>(progress.newest[number - first] - 'a');
  return kind < kCollectiveKindNames.size() ? static_cast<CollectiveKind>(kind) : CollectiveKind::kUnknown;
}

std::string encode(const PeerState& state) {
  std::size_t iterations = std::min(state.summary.iterations.size(), kPeerIterations);
  std::string bytes = encode_newest(state, iterations);
  while (bytes.size() > kPeerBytes && iterations > 0) bytes = encode_newest(state, --iterations);
  return bytes;
}

std::optional<PeerState> decode_peer(std::string_view bytes) {
  std::uint32_t check = 0;
  if (bytes.size() < sizeof check) return std::nullopt;
  std::memcpy(&check, bytes.data() + bytes.size() - sizeof check, sizeof check);
  bytes.remove_suffix(sizeof check);
  if (crc32(bytes) != check) return std::nullopt;
  Reader in{bytes};
  PeerState state;
  RankSummary& summary = state.summary;
  std::uint32_t form = 0;
  in.number(form);
  if (form != kForm) return std::nullopt;
  identity(in, summary.who);
  in.number(state.at);
  in.text(state.doing);
  in.number(state.doing_for);
  in.number(state.left);
  state.groups.resize(in.count());
  for (GroupProgress& group : state.groups) group_fields(in, group);
  for (std::size_t left = in.count(); left > 0 && in.good(); --left) {
    std::string text;
    in.text(text);
    auto about = collective_of_text(text);
    if (!about) return std::nullopt;
    summary.abouts.push_back(*std::move(about));
  }
  for (std::size_t left = in.count(); left > 0 && in.good(); --left) {
    RankIteration iteration;
    iteration_fields(in, iteration);
    if (!sound(iteration)) return std::nullopt;
    iteration.first_use = static_cast<std::uint32_t>(summary.uses.size());
    iteration.use_count = static_cast<std::uint32_t>(in.count());
    for (std::uint32_t u = 0; u < iteration.use_count && in.good(); ++u) {
      CollectiveUse use;
      in.number(use);
      if (use.about >= summary.abouts.size()) return std::nullopt;
      summary.uses.push_back(use);
    }
    summary.iterations.push_back(iteration);
  }
  if (!in.whole()) return std::nullopt;
  return state;
}

}  // namespace gpudiag
