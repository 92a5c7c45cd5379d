// SPDX-License-Identifier: Apache-2.0
#include "timeline/range_table.hpp"

#include <algorithm>
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

// Starting workers is this thread's own work.
constexpr RangeLabel owner(Cause cause, SubCause sub_cause, BatchMode mode) {
  return {RangeMeaning::kOwner, cause, sub_cause, mode, MarkSource::kPattern};
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
    {"^(wait(ing)?[_ ]for|await(ing)?)[_ ](next[_ ])?(batch|data)(: .*)?$|^(batch|data)[_ ]wait$", batch_of_workers()},
    {"_?SingleProcessDataLoaderIter.*__next__", owner(Cause::kDataLoading, SubCause::kInline)},
    {"^enumerate\\(DataLoader\\)|DataLoader.*__next__|^(##\\s*)?(data_?load(ing|er)?|next_?batch|"
     "load_?batch|get_?batch|fetch_?batch|dataloader[._]next)(\\s*##)?$|"
     "^next\\(.*(load|iter|batch|data).*\\)$",
     owner(Cause::kDataLoading)},
    {"^DataLoader\\.__iter__$", owner(Cause::kDataLoading, SubCause::kWorkerStart, BatchMode::kInline)},
    {"^torch\\.compile$", owner(Cause::kHost, SubCause::kCompile)},
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
// They also recurse for each character and parenthesis of a pattern, on whichever thread starts the
// session.
constexpr std::size_t kLongestPattern = 1000;
constexpr int kDeepestPattern = 20;

constexpr auto kFlags = std::regex::ECMAScript | std::regex::icase | std::regex::optimize;
// What users write may hold `(.*)*`, for which a search that backtracks takes longer than the job.
// libstdc++ also has one whose time is bounded; back references are not for it.
#if defined(__GLIBCXX__) && __GLIBCXX__ >= 20210427
constexpr auto kUserFlags = kFlags | std::regex_constants::__polynomial;
#else
constexpr auto kUserFlags = kFlags;
#endif

/// The most parentheses that are open at once, escaped ones and those of classes included.
int depth_of(std::string_view pattern) {
  int depth = 0;
  int deepest = 0;
  for (const char c : pattern) {
    if (c == '(') deepest = std::max(deepest, ++depth);
    if (c == ')' && depth > 0) --depth;
  }
  return deepest;
}

/// What is wrong with a pattern, for people.
const char* fault_of(std::string_view pattern, std::regex_constants::error_type code) {
  using namespace std::regex_constants;
  switch (code) {
    case error_paren:  // libstdc++ gives it for each sign that is out of place
      return std::count(pattern.begin(), pattern.end(), '(') == std::count(pattern.begin(), pattern.end(), ')')
                 ? "nothing stands before *, + or ?"
                 : "a parenthesis has no partner";
    case error_brack: return "a bracket has no partner";
    case error_brace: return "a brace has no partner";
    case error_badbrace: return "between braces stands no number of repetitions";
    case error_range: return "a range of characters runs backwards";
    case error_escape: return "it ends in a backslash, or one stands before a character that takes none";
    case error_badrepeat: return "nothing stands before *, + or ?";
    case error_ctype: return "there is no class of characters of that name";
    case error_collate: return "there is no character of that name";
    case error_backref: return "it refers back, which is not allowed";
    default: return "it refers back, which is not allowed, or takes too much to compile";
  }
}

/// A pattern or rule as messages show it.
std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 100;
  std::string shown{'\''};
  shown.append(text.substr(0, kShown)).append(text.size() > kShown ? "...'" : "'");
  return shown;
}

}  // namespace

RangeTable::RangeTable(const std::vector<std::string>& rules, const std::string& iteration_pattern,
                       const NameTable& names)
    : names_(names) {
  for (const auto& rule : rules) add_user_rule(rule);
  if (iteration_pattern.empty()) add_built_in(kIterationPattern, iteration(MarkSource::kPattern));
  else add(iteration_pattern, iteration(MarkSource::kPattern), "GPUDIAG_ITERATION ");
  for (const auto& built_in : kBuiltIn) add_built_in(built_in.pattern, built_in.label);
}

void RangeTable::add_built_in(const char* pattern, RangeLabel label) {
  rules_.push_back({std::regex(pattern, kFlags), label});
}

void RangeTable::add(std::string_view pattern, RangeLabel label, const char* kind) {
  if (pattern.size() > kLongestPattern || depth_of(pattern) > kDeepestPattern) {
    errors_.push_back(kind + quoted(pattern) + " is too long (over " + std::to_string(kLongestPattern) +
                      " bytes) or too deep (over " + std::to_string(kDeepestPattern) + " parentheses)");
    return;
  }
  try {
    rules_.push_back({std::regex(pattern.begin(), pattern.end(), kUserFlags), label});
  } catch (const std::regex_error& error) {
    errors_.push_back(kind + quoted(pattern) + " is no regular expression: " + fault_of(pattern, error.code()));
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
    errors_.push_back("range rule " + quoted(rule) +
                      " is not of the form regex=cause, regex=cause:sub_cause, regex=data_loading:wait or regex=iteration");
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
  RangeLabel label = said_or_named(range);
  if (range.has(record_flag::kNotBlocked)) label.mode = BatchMode::kInline;
  return label;
}

RangeLabel RangeTable::said_or_named(const Record& range) {
  if (range.cause != 0 && range.cause <= kCauseCount) {
    const auto sub_cause = range.sub_cause != 0 && range.sub_cause <= kSubCauseNames.size()
                               ? static_cast<SubCause>(range.sub_cause - 1)
                               : SubCause::kNone;
    RangeLabel label = owner(static_cast<Cause>(range.cause - 1), sub_cause);
    // Who makes the batch, the API's cause does not say; the name may.
    if (sub_cause == SubCause::kNone && label.cause == Cause::kDataLoading)
      if (const RangeLabel by_name = named(range.name); by_name.cause == label.cause) label.mode = by_name.mode;
    return label;
  }
  return named(range.name);
}

RangeLabel RangeTable::named(NameId name) {
  const std::size_t id = raw(name);
  if (id >= names_.size()) return {};
  if (id >= cache_.size()) cache_.resize(id + 1);
  auto& cached = cache_[id];
  if (!cached) cached = look_up(names_.text(name));
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
