// SPDX-License-Identifier: Apache-2.0
#include "attribution/what_if.hpp"

namespace gpudiag {

std::string name_of(const Removal& removal) {
  if (removal.what == Removal::kCommunication) return "communication";
  if (removal.what == Removal::kCopy) return "copy";
  if (!removal.is_cause()) return {};
  std::string name{name_of(removal.cause())};
  if (removal.sub_cause != SubCause::kNone) name.append(":").append(name_of(removal.sub_cause));
  return name;
}

Removal removal_named(std::string_view name) {
  if (name == "communication") return {Removal::kCommunication, SubCause::kNone};
  if (name == "copy") return {Removal::kCopy, SubCause::kNone};
  const std::size_t colon = name.find(':');
  const auto cause = cause_named(name.substr(0, colon));
  if (!cause) return {};
  if (colon == std::string_view::npos) return Removal::of(*cause);
  const auto sub_cause = sub_cause_named(name.substr(colon + 1));
  return sub_cause ? Removal::of(*cause, *sub_cause) : Removal{};
}

}  // namespace gpudiag
