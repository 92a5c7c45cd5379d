// SPDX-License-Identifier: Apache-2.0
#include "setting_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "record/names.hpp"
#include "timeline/range_table.hpp"

namespace gpudiag::tool {
namespace {

constexpr std::string_view kPrefix = "GPUDIAG_";

// GPUDIAG_CALLBACKS as --callbacks.
std::string flag_of(std::string_view variable) {
  std::string flag = "--";
  for (const char c : variable.substr(kPrefix.size()))
    flag += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return flag;
}

std::string describe(const OptionSpec& spec) {
  std::string text = fmt::format("{}\n{}", spec.help, spec.name);
  if (!spec.default_value.empty()) text += fmt::format(", by default {}", spec.default_value);
  return text;
}

// `--log -- ./trainer` lacks a value; the parser would take the dashes for it.
CLI::Validator is_no_option(std::string_view values) {
  return {[values](const std::string& value) {
            return value.rfind("--", 0) == 0 ? fmt::format("needs a value ({}), and {} is none", values, value)
                                             : std::string{};
          },
          ""};
}

}  // namespace

void add_setting_options(CLI::App& command, GivenOptions& given) {
  for (const OptionSpec& spec : option_table()) {
    const std::string name{spec.name};
    CLI::Option* option = command.add_option_function<std::string>(
        flag_of(name), [&given, name](const std::string& value) { given[name] = value; }, describe(spec));
    option->type_name(std::string{spec.values})->group("Settings");
    // `--record` alone means on, like any flag.
    if (spec.name == "GPUDIAG_RECORD" || spec.name == "GPUDIAG_NCCL") option->expected(0, 1)->default_str("on");
    else option->check(is_no_option(spec.values));
  }
}

std::vector<std::string> complaints_about(const GivenOptions& given) {
  std::vector<std::string> complaints;
  const Settings settings =
      read_settings(given, [](std::string_view) { return std::nullopt; }, complaints, OnWrongValue::kRefuse);
  const NameTable names;
  const RangeTable rules{settings.ranges, settings.iteration, names};
  complaints.insert(complaints.end(), rules.errors().begin(), rules.errors().end());
  return complaints;
}

}  // namespace gpudiag::tool
