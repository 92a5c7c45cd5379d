// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/row_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace gpudiag::nsys_file {

RowReader::RowReader(Database& database, Reading& reading, std::string_view table,
                     std::initializer_list<Column> columns)
    : reading_{reading}, table_{table} {
  const std::vector<TableColumn> there = database.columns(table);
  if (there.empty()) return;
  std::string list;
  for (const Column& column : columns) {
    if (!list.empty()) list += ',';
    if (std::ranges::find(there, std::string_view{column.name}, &TableColumn::name) != there.end()) {
      list += quoted(column.name);
      continue;
    }
    list += "NULL";
    if (column.tells != nullptr)
      absent_.push_back(fmt::format("{} has no column {}: {}", table, column.name, column.tells));
  }
  statement_ = database.prepare(fmt::format("SELECT {} FROM {}", list, quoted(table)));
}

bool RowReader::next() {
  if (!statement_) return false;
  if (!statement_->step() || rows_ >= reading_.row_limit) {
    if (statement_->failed() || rows_ >= reading_.row_limit) {
      reading_.cut = true;
      reading_.unknown.push_back(
          fmt::format("{} cannot be read behind its row {}: the file is damaged", table_, rows_));
    }
    statement_.reset();
    return false;
  }
  if (rows_++ == 0)
    for (std::string& sentence : absent_) reading_.unknown.push_back(std::move(sentence));
  ++reading_.rows;
  if (reading_.on_row) reading_.on_row();
  return true;
}

std::uint32_t fold_id(std::int64_t id) {
  if (id >= std::numeric_limits<std::int32_t>::min() && id <= std::numeric_limits<std::uint32_t>::max())
    return static_cast<std::uint32_t>(id);
  const auto bits = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
  return static_cast<std::uint32_t>(bits >> 32);
}

}  // namespace gpudiag::nsys_file
