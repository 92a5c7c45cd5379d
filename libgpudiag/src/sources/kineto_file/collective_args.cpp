// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/collective_args.hpp"

#include <algorithm>
#include <string>

#include "sources/kineto_file/json_string.hpp"
#include "sources/kineto_file/number_text.hpp"
#include "sources/text.hpp"

namespace gpudiag::kineto_file {
namespace {

std::string text_at(const TraceEvent& event, Field field) { return repaired_text(unescaped(unquoted(event[field]))); }

std::uint64_t count_at(const TraceEvent& event, Field field) {
  const auto value = integer_of(event[field]);
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

}  // namespace

// A group's name alone is not its own: each rank counts the groups it knows. Its ranks make it so; of
// large groups torch writes the first few and dots.
std::optional<CollectiveInfo> collective_of(const TraceEvent& event) {
  if (event[Field::kCollective].empty()) return std::nullopt;
  CollectiveInfo info;
  info.kind = collective_kind_named(unquoted(event[Field::kCollective]));
  info.datatype = datatype_named(text_at(event, Field::kElementType));
  // The whole is what the larger side holds: an all-gather's output, a reduce-scatter's input.
  info.bytes = std::max(count_at(event, Field::kElementsIn), count_at(event, Field::kElementsOut)) *
               datatype_bytes(info.datatype);
  info.group_size = static_cast<std::uint32_t>(count_at(event, Field::kGroupSize));
  info.group = text_at(event, Field::kGroupName);
  if (const std::string ranks = text_at(event, Field::kGroupRanks); !ranks.empty()) info.group += ":" + ranks;
  const auto from = integer_of(event[Field::kRankFrom]);
  const auto to = integer_of(event[Field::kRankTo]);
  if (is_point_to_point(info.kind) && from && to && *from >= 0 && *to >= 0) {
    const bool sends = info.kind == CollectiveKind::kSend;
    info.rank_in_group = static_cast<std::uint32_t>(sends ? *from : *to);
    info.peer = static_cast<std::uint32_t>(sends ? *to : *from);
  }
  return info;
}

std::uint32_t sequence_of(const TraceEvent& event) {
  const auto value = integer_of(event[Field::kSequence]);
  return value && *value >= 0 ? static_cast<std::uint32_t>(*value) : kNoSequence;
}

}  // namespace gpudiag::kineto_file
