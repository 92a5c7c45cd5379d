// SPDX-License-Identifier: Apache-2.0
#include "record/collective.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace gpudiag {
namespace {

constexpr std::string_view kPrefix = "coll ";

/// Letters and digits, in small letters: `_allgather_base` and `AllGatherBase` read alike.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct NamedKind {
  std::string_view part;
  CollectiveKind kind;
};

// Searched in order in the plain name: what contains another comes first.
constexpr NamedKind kNamedKinds[] = {
    {"allreduce", CollectiveKind::kAllReduce},         {"allgather", CollectiveKind::kAllGather},
    {"reducescatter", CollectiveKind::kReduceScatter}, {"alltoall", CollectiveKind::kAllToAll},
    {"sendrecv", CollectiveKind::kSendRecv},           {"broadcast", CollectiveKind::kBroadcast},
    {"barrier", CollectiveKind::kBarrier},             {"gather", CollectiveKind::kGather},
    {"scatter", CollectiveKind::kScatter},             {"reduce", CollectiveKind::kReduce},
    {"send", CollectiveKind::kSend},                   {"recv", CollectiveKind::kRecv},
};

struct NamedType {
  std::string_view plain;
  std::string_view name;
  std::uint32_t bytes;
};

// Of NCCL's kernels and enumerators, of torch's ScalarType and of its type names.
constexpr NamedType kNamedTypes[] = {
    {"float", "float32", 4},    {"float32", "float32", 4},   {"f32", "float32", 4},      {"ncclfloat32", "float32", 4},
    {"double", "float64", 8},   {"float64", "float64", 8},   {"f64", "float64", 8},      {"ncclfloat64", "float64", 8},
    {"half", "float16", 2},     {"float16", "float16", 2},   {"f16", "float16", 2},      {"ncclfloat16", "float16", 2},
    {"c10half", "float16", 2},  {"bfloat16", "bfloat16", 2}, {"bf16", "bfloat16", 2},    {"ncclbfloat16", "bfloat16", 2},
    {"c10bfloat16", "bfloat16", 2},
    {"char", "int8", 1},        {"int8", "int8", 1},         {"int8t", "int8", 1},       {"i8", "int8", 1},
    {"byte", "uint8", 1},       {"uint8", "uint8", 1},       {"uint8t", "uint8", 1},     {"u8", "uint8", 1},
    {"bool", "bool", 1},        {"short", "int16", 2},       {"int16", "int16", 2},
    {"int", "int32", 4},        {"int32", "int32", 4},       {"int32t", "int32", 4},     {"i32", "int32", 4},
    {"uint32", "uint32", 4},    {"uint32t", "uint32", 4},    {"u32", "uint32", 4},
    {"long", "int64", 8},       {"longint", "int64", 8},     {"int64", "int64", 8},      {"int64t", "int64", 8},
    {"i64", "int64", 8},        {"uint64", "uint64", 8},     {"uint64t", "uint64", 8},   {"u64", "uint64", 8},
    {"float8e4m3", "float8_e4m3", 1},   {"f8e4m3", "float8_e4m3", 1}, {"float8e4m3fn", "float8_e4m3", 1},
    {"float8e5m2", "float8_e5m2", 1},   {"f8e5m2", "float8_e5m2", 1},
};

void append_field(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  out.append(" ").append(key).append("=");
  for (const char c : value) out += c == ' ' || c == '\n' || c == '\t' ? '_' : c;
}

void append_number(std::string& out, std::string_view key, std::uint64_t value, std::uint64_t none) {
  if (value != none) append_field(out, key, std::to_string(value));
}

template <typename Number>
void read_number(std::string_view text, Number& into) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) into = number;
}

void read_field(std::string_view key, std::string_view value, CollectiveInfo& info) {
  if (key == "bytes") read_number(value, info.bytes);
  else if (key == "type") info.datatype = value;
  else if (key == "op") info.reduction = value;
  else if (key == "algo") info.algorithm = value;
  else if (key == "proto") info.protocol = value;
  else if (key == "group") info.group = value;
  else if (key == "size") read_number(value, info.group_size);
  else if (key == "rank") read_number(value, info.rank_in_group);
  else if (key == "peer") read_number(value, info.peer);
  else if (key == "root") read_number(value, info.root);
  else if (key == "channels") read_number(value, info.channels);
}

std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

CollectiveKind collective_kind_named(std::string_view name) {
  const std::string text = plain(name);
  for (const auto& [part, kind] : kNamedKinds)
    if (text.find(part) != std::string::npos) return kind;
  return CollectiveKind::kUnknown;
}

std::string text_of(const CollectiveInfo& info) {
  std::string out{kPrefix};
  out += name_of(info.kind);
  append_number(out, "bytes", info.bytes, 0);
  append_field(out, "type", info.datatype);
  append_field(out, "op", info.reduction);
  append_field(out, "algo", info.algorithm);
  append_field(out, "proto", info.protocol);
  append_field(out, "group", info.group);
  append_number(out, "size", info.group_size, 0);
  append_number(out, "rank", info.rank_in_group, kNoRank);
  append_number(out, "peer", info.peer, kNoRank);
  append_number(out, "root", info.root, kNoRank);
  append_number(out, "channels", info.channels, 0);
  return out;
}

std::optional<CollectiveInfo> collective_of_text(std::string_view text) {
  if (text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  CollectiveInfo info;
  const std::string_view kind = take_word(text);
  const auto found = std::find(kCollectiveKindNames.begin(), kCollectiveKindNames.end(), kind);
  if (found != kCollectiveKindNames.end())
    info.kind = static_cast<CollectiveKind>(found - kCollectiveKindNames.begin());
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) read_field(word.substr(0, equals), word.substr(equals + 1), info);
  }
  return info;
}

std::string datatype_named(std::string_view name) {
  const std::string text = plain(name);
  for (const NamedType& type : kNamedTypes)
    if (type.plain == text) return std::string{type.name};
  return text;
}

std::uint32_t datatype_bytes(std::string_view datatype) {
  for (const NamedType& type : kNamedTypes)
    if (type.name == datatype) return type.bytes;
  return 0;
}

}  // namespace gpudiag
