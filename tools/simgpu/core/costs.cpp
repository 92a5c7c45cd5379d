// SPDX-License-Identifier: Apache-2.0
#include "costs.hpp"

#include <cxxabi.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "options.hpp"

namespace simgpu {
namespace {

constexpr std::array<const char*, 7> kCopyNames = {"h2d", "d2h",      "d2d",   "p2p",
                                                   "h2h", "pageable", "memset"};

struct Rules {
  std::vector<std::pair<std::regex, KernelCost>> kernels;
  // PCIe gen5 ×16 for pinned memory, a quarter of it for pageable memory, HBM for the device,
  // NVLink between devices.
  std::array<CopyCost, 7> copies = {{{1500, 50e9},
                                     {1500, 50e9},
                                     {1000, 2.4e12},
                                     {2000, 300e9},
                                     {500, 20e9},
                                     {2000, 12e9},
                                     {1000, 3e12}}};
  std::map<std::string, std::int64_t, std::less<>> apis;
};

bool set_argument(KernelCost& cost, const std::string& key, const std::string& value) {
  static constexpr std::array<const char*, 7> kTypes = {"",    "u64", "i64", "u32",
                                                        "i32", "f32", "f64"};
  for (std::size_t type = 1; type < kTypes.size(); ++type) {
    if (value != kTypes[type]) continue;
    cost.argument = std::atoi(key.c_str() + 3);
    cost.argument_type = static_cast<ArgumentType>(type);
    return true;
  }
  return false;
}

bool set_kernel(KernelCost& cost, const std::string& key, const std::string& value) {
  if (key.rfind("arg", 0) == 0) return set_argument(cost, key, value);
  const double number = std::strtod(value.c_str(), nullptr);
  if (key == "ns") {
    cost.ns = number;
  } else if (key == "per_thread_ns") {
    cost.per_thread_ns = number;
  } else if (key == "per_block_ns") {
    cost.per_block_ns = number;
  } else if (key == "scale") {
    cost.scale = number;
  } else if (key == "noise") {
    cost.noise = number;
  } else {
    return false;
  }
  return true;
}

// Reads one rule; false where it makes no sense.
bool read_rule(Rules& rules, const std::string& text) {
  std::istringstream words(text);
  std::string what;
  std::string name;
  words >> what >> name;
  if (name.empty()) return false;
  KernelCost kernel;
  kernel.ns = kernel.per_thread_ns = 0.0;  // a rule says all of it
  std::size_t copy = kCopyNames.size();
  for (std::size_t i = 0; i < kCopyNames.size(); ++i) {
    if (name == kCopyNames[i]) copy = i;
  }
  if (what == "copy" && copy == kCopyNames.size()) return false;
  for (std::string setting; words >> setting;) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) return false;
    const std::string key = setting.substr(0, equals);
    const std::string value = setting.substr(equals + 1);
    const double number = std::strtod(value.c_str(), nullptr);
    if (what == "kernel" && set_kernel(kernel, key, value)) continue;
    if (what == "copy" && key == "latency_ns") {
      rules.copies[copy].latency_ns = number;
    } else if (what == "copy" && key == "bytes_per_s" && number > 0) {
      rules.copies[copy].bytes_per_s = number;
    } else if (what == "api" && key == "host_ns") {
      rules.apis[name] = static_cast<std::int64_t>(number);
    } else {
      return false;
    }
  }
  if (what == "kernel") rules.kernels.emplace_back(std::regex(name), kernel);
  return what == "kernel" || what == "copy" || what == "api";
}

void read_rules(Rules& rules, std::istream& in) {
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find('#'));
    std::istringstream parts(line);
    for (std::string rule; std::getline(parts, rule, ';');) {
      if (rule.find_first_not_of(" \t\r") == std::string::npos) continue;
      bool good = false;
      try {
        good = read_rule(rules, rule);
      } catch (const std::regex_error&) {
        good = false;
      }
      if (!good) {
        std::fprintf(stderr, "simgpu: SIMGPU_COSTS: '%s' is no rule and is left out\n",
                     rule.c_str());
      }
    }
  }
}

const Rules& rules() {
  static const Rules* const kRules = [] {
    auto* read = new Rules;
    std::ifstream file(options().costs);
    if (file) {
      read_rules(*read, file);
    } else {
      std::istringstream text(options().costs);
      read_rules(*read, text);
    }
    return read;
  }();
  return *kRules;
}

template <typename T>
double read_as(const void* argument) {
  T value;
  std::memcpy(&value, argument, sizeof value);
  return static_cast<double>(value);
}

double read_argument(ArgumentType type, const void* argument) {
  switch (type) {
    case ArgumentType::u64:
      return read_as<std::uint64_t>(argument);
    case ArgumentType::i64:
      return read_as<std::int64_t>(argument);
    case ArgumentType::u32:
      return read_as<std::uint32_t>(argument);
    case ArgumentType::i32:
      return read_as<std::int32_t>(argument);
    case ArgumentType::f32:
      return read_as<float>(argument);
    case ArgumentType::f64:
      return read_as<double>(argument);
    case ArgumentType::none:
      break;
  }
  return 0.0;
}

// A factor in [1 - noise, 1 + noise], the same sequence for the same seed.
double noise_factor(double noise) {
  static std::atomic<std::uint64_t> draws{0};  // relaxed: a counter
  if (noise <= 0.0) return 1.0;
  const std::uint64_t draw = draws.fetch_add(1, std::memory_order_relaxed);
  const double unit = static_cast<double>(mix(options().seed + draw) >> 11) * 0x1.0p-53;
  return 1.0 + noise * (2.0 * unit - 1.0);
}

std::int64_t at_least_one(double ns) {
  return ns < 1.0 ? 1 : static_cast<std::int64_t>(std::llround(std::min(ns, 9e18)));
}

}  // namespace

KernelCost kernel_cost(const std::string& mangled_name, const KernelCost& otherwise) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled_name.c_str(), nullptr, nullptr, &status);
  const std::string plain = status == 0 ? demangled : "";
  std::free(demangled);
  for (const auto& [pattern, cost] : rules().kernels) {
    if (std::regex_search(mangled_name, pattern) || std::regex_search(plain, pattern)) return cost;
  }
  return otherwise;
}

std::int64_t kernel_duration_ns(const KernelCost& cost, const Dimensions& grid,
                                const Dimensions& block, void** arguments) {
  const auto blocks = static_cast<double>(grid.count());
  double ns = cost.ns + cost.per_block_ns * blocks +
              cost.per_thread_ns * blocks * static_cast<double>(block.count());
  if (cost.argument >= 0 && arguments != nullptr) {
    ns += cost.scale * read_argument(cost.argument_type, arguments[cost.argument]);
  }
  return at_least_one(ns * noise_factor(cost.noise < 0.0 ? options().noise : cost.noise));
}

std::int64_t copy_duration_ns(CopyClass copy_class, std::uint64_t bytes) {
  const CopyCost& cost = rules().copies[static_cast<std::size_t>(copy_class)];
  const double ns = cost.latency_ns + static_cast<double>(bytes) / cost.bytes_per_s * 1e9;
  return at_least_one(ns * noise_factor(options().noise));
}

std::int64_t api_cost_ns(std::string_view function) {
  const auto at = rules().apis.find(function);
  return at == rules().apis.end() ? 0 : at->second;
}

}  // namespace simgpu
