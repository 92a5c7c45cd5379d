// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// The texts of an export, which its rows refer to by number. Only those that are asked for are read:
// an export keeps whole files of the job in the same table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "record/names.hpp"
#include "sources/nsys_file/row_reader.hpp"

namespace gpudiag::nsys_file {

class Strings {
 public:
  Strings(Database& database, Reading& reading);

  /// Of a text that stands in the file; nothing of a number that refers to none.
  std::optional<std::string> text(std::int64_t id);

 private:
  Reading& reading_;
  std::optional<Statement> look_up_;  ///< by primary key; none where the table has no such key
  std::unordered_map<std::int64_t, std::string> all_;  ///< then everything is read at once
};

}  // namespace gpudiag::nsys_file
