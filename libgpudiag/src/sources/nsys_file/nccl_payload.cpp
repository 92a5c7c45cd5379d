// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/nccl_payload.hpp"

#include <charconv>
#include <cstring>

namespace gpudiag::nsys_file {
namespace {

// In front of the data: domain, schema and sizes, little-endian, each padded to 8 bytes.
constexpr std::size_t kHeader = 32;
constexpr std::size_t kSchemaAt = 8;

template <typename Number>
std::optional<Number> number_at(std::string_view bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Number)) return std::nullopt;
  Number number{};
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

/// NVTX's numbers of types; those that NCCL uses for whole numbers.
std::optional<std::uint64_t> value_at(std::string_view bytes, std::size_t offset, std::int64_t type) {
  switch (type) {
    case 5:   // int
    case 6:   // unsigned
    case 15:  // int32
    case 16:  // uint32
      return number_at<std::uint32_t>(bytes, offset);
    case 7:   // long
    case 8:   // unsigned long
    case 9:   // long long
    case 10:  // unsigned long long
    case 17:  // int64
    case 18:  // uint64
    case 22:  // size
      return number_at<std::uint64_t>(bytes, offset);
    default: return std::nullopt;
  }
}

void set(NcclPayload& payload, std::string_view name, std::uint64_t value) {
  const auto small = static_cast<std::uint32_t>(value);
  if (name == "NCCL communicator ID") payload.communicator = value;
  else if (name == "Message size [bytes]") payload.bytes = value;
  else if (name == "Peer rank") payload.peer = small;
  else if (name == "Root") payload.root = small;
  else if (name == "No. of ranks") payload.ranks = small;
  else if (name == "Rank") payload.rank = small;
}

void set(NcclPayload& payload, std::string_view name, std::string_view text) {
  if (name == "Reduction operation") payload.reduction = text;
  else if (name == "Datatype") payload.datatype = text;
}

/// The string or number that `text` begins with, and what follows it; strings without their quotes.
std::string_view take_token(std::string_view& text, bool& is_string) {
  const std::size_t start = text.find_first_not_of(" \t\r\n:,");
  if (start == text.npos) return text = {};
  text.remove_prefix(start);
  is_string = text.front() == '"';
  std::size_t end = is_string ? 1 : 0;
  while (end < text.size() && (is_string ? text[end] != '"' : std::strchr(" \t\r\n,}]", text[end]) == nullptr))
    end += is_string && text[end] == '\\' ? 2 : 1;
  end = std::min(end, text.size());
  const std::string_view token = is_string ? text.substr(1, end - 1) : text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + (is_string ? 1 : 0)));
  return token;
}

std::optional<std::uint64_t> number_of(std::string_view token) {
  const bool hexadecimal = token.starts_with("0x");
  if (hexadecimal) token.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(token.data(), token.data() + token.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != token.data() + token.size()) return std::nullopt;
  return value;
}

}  // namespace

PayloadSchemas::PayloadSchemas(Database& database, Reading& reading) {
  RowReader rows{database, reading, "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                 {{"domainId"}, {"schemaId"}, {"type"}, {"name"}, {"offset"}}};
  while (rows.next()) {
    const auto schema = rows.integer(1);
    const auto type = rows.integer(2);
    const std::int64_t offset = rows.integer(4).value_or(0);  // of the first entry none is written
    if (!schema || !type || offset < 0 || rows.bytes(3).empty()) continue;
    schemas_[{rows.integer(0).value_or(0), *schema}].push_back(
        {std::string{rows.bytes(3)}, *type, static_cast<std::size_t>(offset)});
  }
}

NcclPayload PayloadSchemas::decode(std::string_view binary) const {
  NcclPayload payload;
  const auto domain = number_at<std::uint32_t>(binary, 0);
  const auto schema = number_at<std::uint32_t>(binary, kSchemaAt);
  if (!domain || !schema || binary.size() < kHeader) return payload;
  const auto found = schemas_.find({*domain, *schema});
  if (found == schemas_.end()) return payload;
  for (const Entry& entry : found->second)
    if (const auto value = value_at(binary.substr(kHeader), entry.offset, entry.type))
      set(payload, entry.name, *value);
  return payload;
}

NcclPayload payload_of_json(std::string_view json) {
  NcclPayload payload;
  const std::size_t open = json.find('{');
  if (open == json.npos) return payload;
  json.remove_prefix(open + 1);
  while (!json.empty()) {
    bool key_is_string = false;
    bool is_string = false;
    const std::string_view key = take_token(json, key_is_string);
    if (!key_is_string) break;
    const std::string_view value = take_token(json, is_string);
    if (const auto number = number_of(value)) set(payload, key, *number);
    else if (is_string) set(payload, key, value);
  }
  return payload;
}

}  // namespace gpudiag::nsys_file
