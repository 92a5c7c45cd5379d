// SPDX-License-Identifier: Apache-2.0
#include "attribution/cause.hpp"

#include <algorithm>

namespace gpudiag {
namespace {

template <typename Enum, std::size_t Count>
std::optional<Enum> find_name(const std::array<std::string_view, Count>& names,
                              std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (name.empty() || found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::optional<Cause> cause_named(std::string_view name) {
  return find_name<Cause>(kCauseNames, name);
}

std::optional<SubCause> sub_cause_named(std::string_view name) {
  return find_name<SubCause>(kSubCauseNames, name);
}

}  // namespace gpudiag
