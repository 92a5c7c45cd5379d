// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// A database of somebody else's: opened for reading alone, never trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace gpudiag::nsys_file {

/// Rows of one query. Not thread-safe; must not outlive its database.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_{statement} {}

  /// False at the end, and where the database cannot be read any further: then failed() holds.
  bool step();
  bool failed() const { return failed_; }
  void reset();
  void bind(int parameter, std::int64_t value);

  /// Nothing where the cell is NULL or no whole number of 64 bits.
  std::optional<std::int64_t> integer(int column) const;
  bool is_null(int column) const;
  /// Text or blob, as bytes that stay until the next step; of other cells none.
  std::string_view bytes(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  bool failed_ = false;
};

struct TableColumn {
  std::string name;
  bool primary_key = false;
};

class Database {
 public:
  /// Opens without locks and without touching the file's folder. The error says what the file is
  /// instead, where it is no database that can be read.
  static Result<Database> open(const std::filesystem::path& path);

  /// The file is shorter than it says, or its list of tables is damaged.
  bool is_cut() const { return cut_; }
  bool has_table(std::string_view name) const;
  /// In the database's order; empty where there is no such table.
  std::vector<TableColumn> columns(std::string_view table);
  /// Nothing where the query does not compile, which for ours means that the schema is broken.
  std::optional<Statement> prepare(const std::string& sql);
  /// The greatest rowid of a table: about how many rows it has, without counting them.
  std::uint64_t rows_about(std::string_view table);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_{database} {}
  bool read_tables();
  bool lacks_bytes(const std::filesystem::path& path);

  std::unique_ptr<sqlite3, Close> database_;
  std::vector<std::string> tables_;  ///< sorted
  bool cut_ = false;
};

/// As SQL names things: in double quotes.
std::string quoted(std::string_view name);

}  // namespace gpudiag::nsys_file
