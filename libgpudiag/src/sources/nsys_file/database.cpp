// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <system_error>

namespace gpudiag::nsys_file {
namespace {

constexpr int kLongestValue = 64 << 20;  // bytes of one cell; exports hold files of the job as text

/// Everything but plain letters escaped, so that no path has options in it.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : path.string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '_' || c == '-';
    if (plain) uri += c;
    else uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  // Immutable: no locks, no look at a journal beside it; works on read-only file systems.
  return uri + "?mode=ro&immutable=1";
}

void distrust(sqlite3* database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_exec(database, "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY", nullptr, nullptr, nullptr);
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

bool Statement::step() {
  if (failed_) return false;
  const int result = sqlite3_step(statement_.get());
  failed_ = result != SQLITE_ROW && result != SQLITE_DONE;
  return result == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  failed_ = false;
}

void Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
}

std::optional<std::int64_t> Statement::integer(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_INTEGER: return sqlite3_column_int64(statement_.get(), column);
    case SQLITE_FLOAT: {
      const double value = sqlite3_column_double(statement_.get(), column);
      constexpr double kLimit = 9.2e18;
      if (!(std::abs(value) < kLimit) || std::trunc(value) != value) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    default: return std::nullopt;
  }
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::string_view Statement::bytes(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) return {};
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

Result<Database> Database::open(const std::filesystem::path& path) {
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(uri_of(path).c_str(), &raw,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database{raw};
  if (result != SQLITE_OK) return Error{fmt::format("cannot be opened: {}", sqlite3_errstr(result))};
  distrust(raw);
  if (database.read_tables()) {
    database.cut_ = database.lacks_bytes(path);
    return database;
  }
  // A file that is shorter than it says is read only where its schema may be "written"; it is not.
  sqlite3_exec(raw, "PRAGMA writable_schema=ON", nullptr, nullptr, nullptr);
  database.cut_ = true;
  if (database.read_tables()) return database;
  return Error{fmt::format("begins like a database, as exports of Nsight Systems do, but cannot be read ({}): is "
                           "it complete?", sqlite3_errmsg(raw))};
}

// Half a page is no error to SQLite, which takes the rest for zeros.
bool Database::lacks_bytes(const std::filesystem::path& path) {
  const auto number = [this](const char* pragma) -> std::uint64_t {
    auto row = prepare(pragma);
    return row && row->step() ? static_cast<std::uint64_t>(row->integer(0).value_or(0)) : 0;
  };
  std::error_code ignored;
  const std::uint64_t bytes = std::filesystem::file_size(path, ignored);
  return !ignored && number("PRAGMA page_count") * number("PRAGMA page_size") > bytes;
}

bool Database::read_tables() {
  tables_.clear();
  // Views and virtual tables are no tables that Nsight Systems writes; they could compute anything.
  auto tables = prepare("SELECT name FROM sqlite_master WHERE type='table' AND rootpage>0");
  if (!tables) return false;
  while (tables->step()) tables_.emplace_back(tables->bytes(0));
  std::ranges::sort(tables_);
  return !tables->failed() || (cut_ && !tables_.empty());
}

bool Database::has_table(std::string_view name) const {
  return std::ranges::binary_search(tables_, name);
}

std::optional<Statement> Database::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK ||
      statement == nullptr)
    return std::nullopt;
  return Statement{statement};
}

std::vector<TableColumn> Database::columns(std::string_view table) {
  std::vector<TableColumn> found;
  if (!has_table(table)) return found;
  auto rows = prepare(fmt::format("PRAGMA table_info({})", quoted(table)));
  constexpr int kName = 1;
  constexpr int kPrimaryKey = 5;
  while (rows && rows->step())
    found.push_back({std::string{rows->bytes(kName)}, rows->integer(kPrimaryKey).value_or(0) > 0});
  return found;
}

std::uint64_t Database::rows_about(std::string_view table) {
  if (!has_table(table)) return 0;
  auto row = prepare(fmt::format("SELECT max(rowid) FROM {}", quoted(table)));
  if (!row || !row->step()) return 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(row->integer(0).value_or(0), 0));
}

std::string quoted(std::string_view name) {
  std::string out{'"'};
  for (const char c : name) {
    out += c;
    if (c == '"') out += c;
  }
  return out + '"';
}

}  // namespace gpudiag::nsys_file
