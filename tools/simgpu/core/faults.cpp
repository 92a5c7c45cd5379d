// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "options.hpp"

namespace simgpu {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return parts;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

// A reproducible number in [0, 1) for the n-th occasion of a rule.
double chance(std::uint64_t seed, std::uint64_t occasion) {
  return static_cast<double>(mix(seed ^ mix(occasion)) >> 11) * 0x1.0p-53;
}

}  // namespace

class FaultTable {
 public:
  // Leaked on purpose: faults are asked about until the process is gone.
  static const FaultTable& get() {
    static const FaultTable* const kTable = new FaultTable(std::getenv("SIMGPU_FAULTS"));
    return *kTable;
  }

  std::vector<Fault*> find(std::string_view target) const {
    std::vector<Fault*> found;
    for (const auto& fault : faults_) {
      if (fault->target_ == target) found.push_back(fault.get());
    }
    return found;
  }

  bool empty() const { return faults_.empty(); }

 private:
  explicit FaultTable(const char* rules) {
    if (rules == nullptr) return;
    for (std::string_view rule : split(rules, ';')) add(trim(rule));
  }

  void add(std::string_view rule) {
    if (rule.empty()) return;
    auto fault = std::make_unique<Fault>();
    const std::size_t colon = rule.find(':');
    fault->rule_ = rule;
    fault->target_ = trim(rule.substr(0, colon));
    if (colon != std::string_view::npos) {
      for (std::string_view setting : split(rule.substr(colon + 1), ',')) {
        const std::size_t equals = setting.find('=');
        const bool bare = equals == std::string_view::npos;
        fault->settings_.emplace_back(trim(setting.substr(0, equals)),
                                      bare ? "1" : trim(setting.substr(equals + 1)));
      }
    }
    fault->nth_ = fault->number("nth", 0);
    fault->every_ = fault->number("every", 0);
    fault->after_ = fault->number("after", 0);
    fault->times_ = fault->number("times", 0);
    fault->probability_ = fault->real("p", -1.0);
    fault->seed_ = options().seed ^ (faults_.size() + 1);
    if (fault->has("name")) {
      try {
        fault->name_ = std::regex(std::string(fault->text("name")), std::regex::ECMAScript);
        fault->has_name_ = true;
      } catch (const std::regex_error& error) {
        std::fprintf(stderr, "simgpu: SIMGPU_FAULTS: '%s': name= is no regular expression (%s)\n",
                     fault->rule_.c_str(), error.what());
        return;
      }
    }
    faults_.push_back(std::move(fault));
  }

  std::vector<std::unique_ptr<Fault>> faults_;
};

bool Fault::fires(std::string_view name) {
  if (has_name_ && !std::regex_search(name.begin(), name.end(), name_)) return false;
  const std::int64_t occasion = seen_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (nth_ > 0 && occasion != nth_) return false;
  if (every_ > 0 && occasion % every_ != 0) return false;
  if (occasion <= after_) return false;
  if (probability_ >= 0.0 && chance(seed_, static_cast<std::uint64_t>(occasion)) >= probability_) {
    return false;
  }
  const std::int64_t fired = fired_.fetch_add(1, std::memory_order_relaxed) + 1;
  return times_ == 0 || fired <= times_;
}

std::string_view Fault::text(std::string_view key) const {
  for (const auto& [name, value] : settings_) {
    if (name == key) return value;
  }
  return {};
}

bool Fault::has(std::string_view key) const {
  return !text(key).empty();
}

std::int64_t Fault::number(std::string_view key, std::int64_t fallback) const {
  const std::string value(text(key));
  char* end = nullptr;
  const std::int64_t number = std::strtoll(value.c_str(), &end, 0);
  return value.empty() || *end != '\0' ? fallback : number;
}

double Fault::real(std::string_view key, double fallback) const {
  const std::string value(text(key));
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  return value.empty() || *end != '\0' ? fallback : number;
}

bool any_faults() noexcept {
  static const bool kAny = !FaultTable::get().empty();
  return kAny;
}

Fault* find_fault(std::string_view target) {
  if (!any_faults()) return nullptr;
  const std::vector<Fault*> found = FaultTable::get().find(target);
  return found.empty() ? nullptr : found.front();
}

std::vector<Fault*> find_faults(std::string_view target) {
  return FaultTable::get().find(target);
}

}  // namespace simgpu
