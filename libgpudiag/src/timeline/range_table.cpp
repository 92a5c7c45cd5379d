// SPDX-License-Identifier: Apache-2.0
#include "timeline/range_table.hpp"

#include <charconv>
#include <cstddef>

namespace gpudiag {
namespace {

struct BuiltIn {
  const char* pattern;
  RangeLabel label;
};

constexpr RangeLabel owner(Cause cause, SubCause sub_cause = SubCause::kNone) {
  return {RangeMeaning::kOwner, cause, sub_cause, batch_mode_of(sub_cause), MarkSource::kPattern};
}

// Somebody else makes the batch; who is slow there, and why, the name does not say.
constexpr RangeLabel batch_of_workers() {
  return {RangeMeaning::kOwner, Cause::kDataLoading, SubCause::kNone, BatchMode::kWait, MarkSource::kPattern};
}

constexpr RangeLabel weak(Cause cause, SubCause sub_cause) {
  return {RangeMeaning::kWeak, cause, sub_cause, BatchMode::kInline, MarkSource::kPattern};
}

constexpr RangeLabel iteration(MarkSource mark) {
  return {RangeMeaning::kIteration, Cause::kUnknown, SubCause::kNone, BatchMode::kInline, mark};
}

// Searched in order; the first that matches counts.
const BuiltIn kBuiltIn[] = {
    {"^ProfilerStep#[0-9]+$", iteration(MarkSource::kProfilerStep)},
    {"_?MultiProcessingDataLoaderIter.*__next__", batch_of_workers()},
    {"_?SingleProcessDataLoaderIter.*__next__", owner(Cause::kDataLoading, SubCause::kInline)},
    {"^enumerate\\(DataLoader\\)|DataLoader.*__next__|^(##\\s*)?(data_?load(ing|er)?|next_?batch|"
     "load_?batch|get_?batch|fetch_?batch|dataloader[._]next)(\\s*##)?$|"
     "^next\\(.*(load|iter|batch|data).*\\)$",
     owner(Cause::kDataLoading)},
    {"^(torch\\.save|save_?checkpoint|checkpoint(_?save|ing)?)$", owner(Cause::kCheckpoint)},
    {"^(python\\s)?gc([ :._(].*)?$|^garbage[ _]?collect", owner(Cause::kHost, SubCause::kGarbageCollection)},
    {"^(aten|c10d)::(item|_local_scalar_dense|is_nonzero|equal)$|^(tensor\\.)?item(\\(\\))?$",
     weak(Cause::kSync, SubCause::kItem)},
    {"^(c10d::)?barrier|^gloo:|^mpi:|^store[:.](get|wait|barrier)",
     owner(Cause::kCommunicationWait)},
};

// Names a trainer gives its iteration: `step`, `iteration 7`, `step_12`, `train_step#3`, `Iter 5`.
constexpr const char* kIterationPattern = "^(train(ing)?[_ ]?)?(iter(ation)?|step)([ _:#]*[0-9]+)?$";

// libstdc++'s regular expressions recurse for each character: a name of 100 kB overflows the stack.
// Of a longer name the beginning is looked at.
constexpr std::size_t kLongestName = 1024;

}  // namespace

RangeTable::RangeTable(const std::vector<std::string>& rules, const std::string& iteration_pattern,
                       const NameTable& names)
    : names_(names) {
  for (const auto& rule : rules) add_user_rule(rule);
  add(iteration_pattern.empty() ? std::string_view{kIterationPattern} : iteration_pattern,
      iteration(MarkSource::kPattern));
  for (const auto& built_in : kBuiltIn) add(built_in.pattern, built_in.label);
}

void RangeTable::add(std::string_view pattern, RangeLabel label) {
  try {
    const auto flags = std::regex::ECMAScript | std::regex::icase | std::regex::optimize;
    rules_.push_back({std::regex(pattern.begin(), pattern.end(), flags), label});
  } catch (const std::regex_error&) {
    errors_.push_back("range rule '" + std::string(pattern) + "' is no regular expression");
  }
}

void RangeTable::add_user_rule(const std::string& rule) {
  const auto equals = rule.rfind('=');
  const std::string meaning = equals == std::string::npos ? "" : rule.substr(equals + 1);
  const auto colon = meaning.find(':');
  const std::string pattern = rule.substr(0, equals == std::string::npos ? 0 : equals);
  if (meaning == "iteration") return add(pattern, iteration(MarkSource::kPattern));
  if (meaning == "data_loading:wait") return add(pattern, batch_of_workers());
  const auto cause = cause_named(std::string_view{meaning}.substr(0, colon));
  const auto sub_cause = colon == std::string::npos
                             ? std::optional{SubCause::kNone}
                             : sub_cause_named(std::string_view{meaning}.substr(colon + 1));
  if (!cause || !sub_cause || pattern.empty()) {
    errors_.push_back("range rule '" + rule +
                      "' is not of the form regex=cause, regex=cause:sub_cause, regex=data_loading:wait or regex=iteration");
    return;
  }
  add(pattern, owner(*cause, *sub_cause));
}

RangeLabel RangeTable::look_up(std::string_view name) const {
  name = name.substr(0, kLongestName);
  for (const auto& rule : rules_)
    if (std::regex_search(name.begin(), name.end(), rule.pattern)) return rule.label;
  return {};
}

RangeLabel RangeTable::label_of(const Record& range) {
  if (range.cause != 0 && range.cause <= kCauseCount) {
    const auto sub_cause = range.sub_cause != 0 && range.sub_cause <= kSubCauseNames.size()
                               ? static_cast<SubCause>(range.sub_cause - 1)
                               : SubCause::kNone;
    return owner(static_cast<Cause>(range.cause - 1), sub_cause);
  }
  const std::size_t id = raw(range.name);
  if (id >= names_.size()) return {};
  if (id >= cache_.size()) cache_.resize(id + 1);
  auto& cached = cache_[id];
  if (!cached) cached = look_up(names_.text(range.name));
  return *cached;
}

std::optional<std::uint64_t> number_in(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), number);
  if (error != std::errc{} || end == name.data() + begin) return std::nullopt;
  return number;
}

}  // namespace gpudiag
