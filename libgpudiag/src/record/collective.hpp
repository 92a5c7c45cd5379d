// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// What a source knows of a collective or a transfer between ranks beyond its kernel's name. It is no
// record of its own: what repeats (kind, size, type, communicator) is a text in the name table, so
// that a recording carries it unchanged, and the operation's record names it in `value2`, which
// operations have no other use for:
//
//   record.value2 = value2_of({names.intern(text_of(about)), sequence});
//
// A source that knows nothing leaves value2 at 0; the kernel's name is then all there is
// (timeline/communication_kernel.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/ids.hpp"
#include "record/record.hpp"

namespace gpudiag {

/// What is done. Named as torch.distributed and NCCL name it.
enum class CollectiveKind : std::uint8_t {
  kUnknown, kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kAllToAll, kGather, kScatter,
  kSend, kRecv, kSendRecv, kBarrier,
};
inline constexpr std::array<std::string_view, 13> kCollectiveKindNames{
    "unknown", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
    "gather",  "scatter",    "send",       "recv",           "send_recv", "barrier"};

constexpr std::string_view name_of(CollectiveKind kind) {
  return kCollectiveKindNames[static_cast<std::size_t>(kind)];
}
/// Between two ranks, each of which may do its part at another time.
constexpr bool is_point_to_point(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv || kind == CollectiveKind::kSendRecv;
}
/// Of `all_reduce`, `allreduce`, `AllReduce`, `_allgather_base`, `nccl:all_to_all`; kUnknown of others.
CollectiveKind collective_kind_named(std::string_view name);

inline constexpr std::uint32_t kNoRank = 0xffffffffu;
inline constexpr std::uint32_t kNoSequence = 0xffffffffu;

/// What repeats from one operation to the next. Texts must have no space in them; one that has gets
/// underscores.
struct CollectiveInfo {
  CollectiveKind kind = CollectiveKind::kUnknown;
  /// As nccl-tests counts `size`: of an all-gather and a reduce-scatter the whole, not a rank's part.
  std::uint64_t bytes = 0;            ///< 0: not known
  std::string datatype;               ///< "float32", "bfloat16", …; empty: not known
  std::string reduction;              ///< "sum", "max", …
  std::string algorithm;              ///< "ring", "tree", "nvls", …
  std::string protocol;               ///< "ll", "ll128", "simple"
  std::string group;                  ///< communicator or process group: the same text on all its ranks,
                                      ///< and no two groups of the job with the same; empty: not known
  std::uint32_t group_size = 0;       ///< 0: not known
  std::uint32_t rank_in_group = kNoRank;
  std::uint32_t peer = kNoRank;       ///< of a send or receive, in the group's numbers
  std::uint32_t root = kNoRank;       ///< of a broadcast, reduce, gather, scatter
  std::uint32_t channels = 0;         ///< 0: not known

  bool operator==(const CollectiveInfo&) const = default;
};

/// `coll all_reduce bytes=1048576 type=float32 op=sum group=0:[0,1] size=2 rank=1`. Fields at their
/// defaults are left out.
std::string text_of(const CollectiveInfo& info);
/// Nothing where the text is no such description. Fields of later versions are passed over.
std::optional<CollectiveInfo> collective_of_text(std::string_view text);

/// What an operation's record says: the description, and the how-manieth of its group it is. Sequence
/// numbers count from any number the group's ranks agree on, and may wrap.
struct CollectiveTag {
  NameId about = kNoName;
  std::uint32_t sequence = kNoSequence;

  bool operator==(const CollectiveTag&) const = default;
  bool known() const { return about != kNoName; }
};

constexpr std::uint64_t value2_of(CollectiveTag tag) {
  // Plus one, so that "no sequence number" takes no bytes in a recording.
  return (std::uint64_t{static_cast<std::uint32_t>(tag.sequence + 1)} << 32) | raw(tag.about);
}
/// Of an operation's record; of others value2 means something else.
constexpr CollectiveTag collective_tag_of(std::uint64_t value2) {
  return {NameId{static_cast<std::uint32_t>(value2)}, static_cast<std::uint32_t>(value2 >> 32) - 1};
}

/// "Float", "c10::Half", "ncclBfloat16", "f32" as text_of() writes them: "float32", …; others as they are,
/// in small letters.
std::string datatype_named(std::string_view name);
/// Bytes of one element of a type that datatype_named() knows; 0 of others.
std::uint32_t datatype_bytes(std::string_view datatype);

}  // namespace gpudiag
