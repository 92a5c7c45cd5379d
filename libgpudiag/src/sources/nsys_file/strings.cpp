// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/strings.hpp"

#include <algorithm>
#include <string_view>

namespace gpudiag::nsys_file {
namespace {

constexpr std::size_t kLongestName = 4096;  // bytes; a name is cut there, files of the job have megabytes

std::string kept(std::string_view text) {
  return std::string{text.substr(0, kLongestName)};
}

}  // namespace

Strings::Strings(Database& database, Reading& reading) : reading_{reading} {
  const auto columns = database.columns("StringIds");
  const auto id = std::ranges::find(columns, std::string_view{"id"}, &TableColumn::name);
  if (id != columns.end() && id->primary_key) {
    look_up_ = database.prepare("SELECT value FROM StringIds WHERE id=?");
    return;
  }
  RowReader rows{database, reading, "StringIds", {{"id"}, {"value"}}};
  while (rows.next())
    if (const auto number = rows.integer(0)) all_.emplace(*number, kept(rows.bytes(1)));
}

std::optional<std::string> Strings::text(std::int64_t id) {
  if (!look_up_) {
    const auto found = all_.find(id);
    return found == all_.end() ? std::nullopt : std::optional{found->second};
  }
  look_up_->reset();
  look_up_->bind(1, id);
  if (look_up_->step() && !look_up_->is_null(0)) return kept(look_up_->bytes(0));
  reading_.cut = reading_.cut || look_up_->failed();
  return std::nullopt;
}

}  // namespace gpudiag::nsys_file
