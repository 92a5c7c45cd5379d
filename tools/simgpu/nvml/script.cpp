// SPDX-License-Identifier: Apache-2.0
#include "script.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "../core/listener.hpp"

namespace simgpu::nvml {
namespace {

constexpr std::string_view kNames[] = {
    "utilization.gpu", "utilization.memory", "clock.graphics", "clock.sm",    "clock.memory",
    "clock.video",     "power",              "power.limit",    "energy",      "temperature",
    "fan",             "throttle",           "pcie.tx",        "pcie.rx",     "pcie.generation",
    "pcie.width",      "pcie.replays",       "pstate",         "memory.used", "ecc.uncorrected",
    "mig",             "processes",          "name",           "uuid",        "memory"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Field::kCount));

std::optional<Field> find_field(std::string_view word) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), word);
  if (found == std::end(kNames)) {
    return std::nullopt;
  }
  return static_cast<Field>(found - std::begin(kNames));
}

// "250ms" as ns.
std::optional<std::int64_t> parse_time(const std::string& word) {
  char* unit = nullptr;
  const double value = std::strtod(word.c_str(), &unit);
  if (unit == word.c_str() || value < 0) {
    return std::nullopt;
  }
  const std::string_view suffix(unit);
  const double scale = suffix == "s"                         ? 1e9
                       : suffix == "ms"                      ? 1e6
                       : suffix == "us"                      ? 1e3
                       : suffix == "ns" || suffix.empty()    ? 1.0
                                                             : 0.0;
  return scale > 0 ? std::optional(std::llround(value * scale)) : std::nullopt;
}

// Decimal, or hexadecimal after 0x.
std::optional<std::int64_t> parse_number(std::string_view word) {
  const bool hexadecimal = word.substr(0, 2) == "0x";
  const std::string_view digits = hexadecimal ? word.substr(2) : word;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                            hexadecimal ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<Reading> parse_reading(std::string_view word) {
  if (word == "n/a") {
    return Reading{Reading::State::kNotSupported, 0};
  }
  const auto number = parse_number(word);
  return number ? std::optional(Reading{Reading::State::kNumber, *number}) : std::nullopt;
}

struct Loaded {
  Script script;
  std::int64_t start_ns = 0;
};

Loaded load() {
  Loaded loaded;
  loaded.start_ns = now_ns();
  const char* path = std::getenv("SIMGPU_NVML");
  if (path == nullptr || *path == '\0') {
    return loaded;
  }
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::string error;
  if (!file) {
    error = "cannot be read";
  } else {
    loaded.script = Script::parse(text.str(), error);
  }
  if (!error.empty()) {
    std::fprintf(stderr, "simgpu: SIMGPU_NVML=%s: %s\n", path, error.c_str());
  }
  return loaded;
}

}  // namespace

std::string_view field_name(Field field) { return kNames[static_cast<std::size_t>(field)]; }

Script Script::parse(std::string_view text, std::string& error) {
  Script script;
  std::size_t number = 0;
  while (!text.empty() && error.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!script.parse_line(line.substr(0, line.find('#')), error)) {
      error = "line " + std::to_string(number) + ": " + error;
    }
  }
  std::stable_sort(script.entries_.begin(), script.entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.from_ns < b.from_ns; });
  return script;
}

bool Script::parse_line(std::string_view line, std::string& error) {
  std::istringstream words{std::string(line)};
  std::string time_word;
  std::string device_word;
  if (!(words >> time_word)) {
    return true;
  }
  const bool repeat = time_word == "repeat";
  if (!(words >> device_word)) {
    error = "expected TIME DEVICE FIELD=VALUE, found only \"" + time_word + '"';
    return false;
  }
  const auto time = parse_time(repeat ? device_word : time_word);
  if (!time || (repeat && *time == 0)) {
    error = "\"" + (repeat ? device_word : time_word) + "\" is no time like 250ms";
    return false;
  }
  if (repeat) {
    repeat_ns_ = *time;
    return true;
  }
  const auto device = device_word == "*" ? std::optional<std::int64_t>(-1)
                                         : parse_number(device_word);
  if (!device) {
    error = "\"" + device_word + "\" is no device: a number or *";
    return false;
  }
  for (std::string setting; words >> setting;) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const auto field = find_field(std::string_view(setting).substr(0, equals));
    const auto reading =
        parse_reading(std::string_view(setting).substr(std::min(equals + 1, setting.size())));
    if (!field || !reading) {
      error = "\"" + setting + "\" is no setting of a field, like power=650000 or fan=n/a";
      return false;
    }
    entries_.push_back({*time, *device, *field, *reading});
  }
  return true;
}

Reading Script::at(std::uint32_t device, Field field, std::int64_t at_ns) const {
  const std::int64_t time = repeat_ns_ > 0 ? at_ns % repeat_ns_ : at_ns;
  Reading reading;
  for (const Entry& entry : entries_) {
    if (entry.from_ns > time) {
      break;
    }
    if (entry.field == field && (entry.device == -1 || entry.device == device)) {
      reading = entry.reading;
    }
  }
  return reading;
}

Reading scripted(std::uint32_t device, Field field) {
  static const auto* const loaded = new Loaded(load());
  return loaded->script.at(device, field, now_ns() - loaded->start_ns);
}

}  // namespace simgpu::nvml
