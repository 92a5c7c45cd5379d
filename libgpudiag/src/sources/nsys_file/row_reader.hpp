// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// The rows of one table, its columns looked up by name: the schema changes from one version of
// Nsight Systems to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sources/nsys_file/database.hpp"
#include "timeline/quality.hpp"

namespace gpudiag::nsys_file {

/// A column, and what is not known without it; null where it may be absent without loss.
struct Column {
  const char* name;
  const char* tells = nullptr;
};

/// What reading a file comes to beside its records. One for a file.
struct Reading {
  Quality& quality;
  std::vector<std::string>& unknown;  ///< sentences, see RecordedInfo
  std::uint64_t row_limit;            ///< of one table: a row takes some bytes, so more are none
  std::function<void()> on_row;       ///< called for each

  std::uint64_t rows = 0;
  bool cut = false;  ///< some table could not be read to its end
};

class RowReader {
 public:
  RowReader(Database& database, Reading& reading, std::string_view table,
            std::initializer_list<Column> columns);

  bool exists() const { return statement_.has_value(); }
  bool next();

  /// By place in the list of columns. Nothing where NULL, absent or no whole number.
  std::optional<std::int64_t> integer(int column) const { return statement_->integer(column); }
  bool is_null(int column) const { return statement_->is_null(column); }
  std::string_view bytes(int column) const { return statement_->bytes(column); }

 private:
  Reading& reading_;
  std::string table_;
  std::optional<Statement> statement_;
  std::vector<std::string> absent_;  ///< sentences, said once there is a row
  std::uint64_t rows_ = 0;
};

/// 32 bits for an id: itself where it fits, else a hash, so that ids which differ in their upper half
/// stay apart.
std::uint32_t fold_id(std::int64_t id);

}  // namespace gpudiag::nsys_file
