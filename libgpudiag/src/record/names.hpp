// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// Interned strings: a record carries a 32-bit NameId, the text is kept once.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "record/ids.hpp"

namespace gpudiag {

/// Grows only (but for replace()); views stay valid for the table's life. Not thread-safe: the drain thread (live) or the
/// reader (recorded) owns it.
class NameTable {
 public:
  NameTable() : texts_{std::string{}} { ids_.emplace(std::string_view{texts_.front()}, kNoName); }

  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  NameId intern(std::string_view text) {
    if (auto found = ids_.find(text); found != ids_.end()) return found->second;
    const NameId id{static_cast<std::uint32_t>(texts_.size())};
    texts_.emplace_back(text);
    ids_.emplace(std::string_view{texts_.back()}, id);
    return id;
  }

  /// The id of a text that has one.
  std::optional<NameId> find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional{found->second};
  }

  /// Gives an id to another text, for sources that run for ever (session/live_names.hpp): no record
  /// with the old meaning may be left. Views of the old text end here.
  void replace(NameId id, std::string_view text) {
    if (raw(id) == 0 || raw(id) >= texts_.size() || ids_.contains(text)) return;
    ids_.erase(std::string_view{texts_[raw(id)]});
    texts_[raw(id)] = text;
    ids_.emplace(std::string_view{texts_[raw(id)]}, id);
  }

  /// The empty text for an id this table never gave out.
  std::string_view text(NameId id) const {
    return raw(id) < texts_.size() ? std::string_view{texts_[raw(id)]} : std::string_view{};
  }

  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, NameId> ids_;
};

}  // namespace gpudiag
