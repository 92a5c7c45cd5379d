// SPDX-License-Identifier: Apache-2.0
#include "session/live_names.hpp"

#include "sources/text.hpp"

namespace gpudiag {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

NameId LiveNames::intern(std::string_view text) {
  if (const auto known = names_.find(text)) return *known;
  const std::string repaired = is_clean_text(text) ? std::string{text} : repaired_text(text);
  if (const auto known = names_.find(repaired)) return *known;
  if (!reuse_) return names_.intern(repaired);
  Shape* shape = shape_of(repaired);
  if (shape == nullptr || (shape->ids.empty() && given_ >= kTotal)) return names_.intern("(other)");
  NameId id{};
  if (shape->ids.size() < kKept && given_ < kTotal) {
    id = names_.intern(repaired);
    ++given_;
  } else {
    id = shape->ids.front();
    shape->ids.pop_front();
    names_.replace(id, repaired);
  }
  shape->ids.push_back(id);
  return id;
}

LiveNames::Shape* LiveNames::shape_of(std::string_view text) {
  folded_.clear();
  for (const char c : text)
    if (!is_digit(c)) folded_ += c;
    else if (folded_.empty() || folded_.back() != '#') folded_ += '#';
  if (const auto found = shapes_.find(folded_); found != shapes_.end()) return &found->second;
  if (shapes_.size() >= kShapes) return nullptr;
  return &shapes_[folded_];
}

}  // namespace gpudiag
