// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/builder.hpp"

#include "sources/text.hpp"

namespace gpudiag::nsys_file {

std::optional<ProcessId> Builder::process_of(std::optional<std::int64_t> global_id) {
  if (!global_id) return std::nullopt;
  const GlobalId id{*global_id};
  const ProcessId next{static_cast<std::uint32_t>(pids_.size())};
  const auto [found, added] = processes_.try_emplace(id.process(), next);
  if (added) pids_.push_back(id.pid());
  return found->second;
}

NameId Builder::name_of(std::initializer_list<std::optional<std::int64_t>> ids) {
  std::optional<std::int64_t> first;
  for (const auto& id : ids) {
    if (!id) continue;
    if (!first) first = id;
    if (const auto known = names_.find(*id); known != names_.end()) return known->second;
    const auto text = strings.text(*id);
    if (!text) continue;
    return names_.emplace(*id, intern_clean(contents.names, *text, contents.quality)).first->second;
  }
  ++contents.quality[Defect::kRepairedText];
  return kNoName;
}

const ApiName& Builder::api_of(std::optional<std::int64_t> id) {
  static const ApiName kUnknown{};
  if (id)
    if (const auto known = apis_.find(*id); known != apis_.end()) return known->second;
  const auto text = id ? strings.text(*id) : std::nullopt;
  if (!text) {
    ++contents.quality[Defect::kRepairedText];
    return kUnknown;
  }
  const ApiName api{intern_clean(contents.names, plain_api_name(*text), contents.quality), api_traits(*text)};
  return apis_.emplace(*id, api).first->second;
}

bool Builder::set_times(Record& record, std::optional<std::int64_t> start, std::optional<std::int64_t> end) {
  if (!start) {
    count_broken();
    return false;
  }
  record.start = record.end = TimePoint{*start};
  if (*start == 0 && end.value_or(0) == 0) {  // CUPTI's way of saying that it could not time a thing
    record.flags |= record_flag::kUntimed;
  } else if (!end || (*end == 0 && *start > 0)) {
    record.flags |= record_flag::kIncomplete;
  } else {
    record.end = TimePoint{*end};
  }
  return true;
}

void Builder::set_device(ProcessId process, ContextId context, DeviceId device) {
  const Context key{raw(process), raw(context)};
  if (key == last_context_ || device == kNoDevice) return;
  last_context_ = key;
  devices_.emplace(key, device);
}

std::optional<DeviceId> Builder::device_of(ProcessId process, ContextId context) const {
  const auto found = devices_.find({raw(process), raw(context)});
  return found == devices_.end() ? std::nullopt : std::optional{found->second};
}

}  // namespace gpudiag::nsys_file
