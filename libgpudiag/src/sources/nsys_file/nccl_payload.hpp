// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// What NCCL says of a call beside its name: it attaches structured data to its NVTX ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sources/nsys_file/row_reader.hpp"

namespace gpudiag::nsys_file {

/// Absent where the call has no such thing or the export leaves it out (it does unless asked).
struct NcclPayload {
  std::optional<std::uint64_t> communicator;
  std::optional<std::uint64_t> bytes;  ///< as the call was given it: of an all-gather one rank's part
  std::optional<std::uint32_t> peer;
  std::optional<std::uint32_t> root;
  std::optional<std::uint32_t> ranks;  ///< of the communicator, where it is made
  std::optional<std::uint32_t> rank;   ///< of the caller in it
  std::string reduction;               ///< as NCCL writes it
  std::string datatype;

  bool empty() const { return !communicator && !bytes && !ranks; }
};

/// How the binary form is laid out, as the export tells.
class PayloadSchemas {
 public:
  PayloadSchemas(Database& database, Reading& reading);

  NcclPayload decode(std::string_view binary) const;

 private:
  struct Entry {
    std::string name;
    std::int64_t type = 0;
    std::size_t offset = 0;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;  ///< domain, schema
  std::map<Key, std::vector<Entry>> schemas_;
};

/// Of the JSON form, an object without objects inside.
NcclPayload payload_of_json(std::string_view json);

}  // namespace gpudiag::nsys_file
