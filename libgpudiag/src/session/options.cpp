// SPDX-License-Identifier: Apache-2.0
#include "session/options.hpp"

#include <array>
#include <charconv>
#include <cstdlib>

#include "fmt/format.h"

namespace gpudiag {
namespace {

constexpr std::array kTable{
    OptionSpec{"GPUDIAG_ENABLED", "on|off", "on", "Switches everything off without a change to the job."},
    OptionSpec{"GPUDIAG_LOG", "on|every|off|FILE", "on",
               "Where the ledger's lines go: stderr at most one a second and rank, stderr one for every "
               "iteration, nowhere, or appended to FILE at most one a second and rank."},
    OptionSpec{"GPUDIAG_DIR", "FOLDER", "",
               "Writes every iteration as a line of JSON to FOLDER/rank<R>.pid<P>.jsonl; no files where it is not "
               "set. `gpudiag run` sets it."},
    OptionSpec{"GPUDIAG_RECORD", "on|off", "off",
               "Writes the raw records too, to FOLDER/rank<R>.pid<P>.gpudiag, for `gpudiag analyze`."},
    OptionSpec{"GPUDIAG_CALLBACKS", "auto|on|off", "auto",
               "CUPTI's callback API for blocking calls and allocations: auto takes the one subscriber only where "
               "it is free and no torch is loaded, off never asks for it. The ledger needs none."},
    OptionSpec{"GPUDIAG_NVTX", "on|off", "on", "Listens to NVTX ranges and marks."},
    OptionSpec{"GPUDIAG_NCCL", "auto|on|off", "auto",
               "NCCL's profiler interface, which tells type, channels and number of every collective: on makes NCCL "
               "load gpudiag, unless NCCL_PROFILER_PLUGIN names another plugin; auto listens where that names gpudiag."},
    OptionSpec{"GPUDIAG_WATCH", "on|off", "on",
               "Looks at the job's threads and worker processes while gaps are long, to say what held them up."},
    OptionSpec{"GPUDIAG_RANGES", "REGEX=CAUSE[:SUB_CAUSE][;...]", "",
               "What range names mean, before the built-in table: a cause of idle time, or `iteration`."},
    OptionSpec{"GPUDIAG_ITERATION", "REGEX", "", "Ranges whose names match are iterations."},
    OptionSpec{"GPUDIAG_PATTERN", "on|off", "on",
               "Looks for iterations in the sequence of launches where nothing marks them."},
    OptionSpec{"GPUDIAG_CUPTI", "FILE", "", "The libcupti.so to use where none is loaded already."},
    OptionSpec{"GPUDIAG_BUDGET", "PERCENT", "2",
               "Share of host time that gpudiag may take, 0.1 to 100; above it detail is shed, and counted."},
    OptionSpec{"GPUDIAG_PEERS", "on|off|HOST:PORT", "on",
               "Ranks of one job compare themselves while it runs, and rank 0's log names the slowest: those of one "
               "host by shared memory, those of other hosts where rank 0 listens at HOST:PORT."},
    OptionSpec{"GPUDIAG_STUCK", "SECONDS", "10",
               "A collective that has not ended for so long is reported, with the ranks that have not come to it."},
    OptionSpec{"GPUDIAG_RANK", "NUMBER", "",
               "Rank of this process in the job; otherwise RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID or PMI_RANK."},
};

constexpr std::array<std::string_view, 4> kRankVariables{"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};

const OptionSpec& spec_of(std::string_view name) {
  for (const OptionSpec& spec : kTable)
    if (spec.name == name) return spec;
  std::abort();  // a name that the table lacks is a bug of ours
}

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

class Reader {
 public:
  Reader(const std::map<std::string, std::string, std::less<>>& overrides, const OptionSource& environment,
         std::vector<std::string>& complaints, OnWrongValue on_wrong, Settings& settings)
      : overrides_{overrides},
        environment_{environment},
        complaints_{complaints},
        on_wrong_{on_wrong},
        settings_{settings} {}

  /// The text that was given for `name`; an empty one is as good as none.
  std::optional<std::string> text(std::string_view name) {
    std::optional<std::string> found;
    if (const auto over = overrides_.find(name); over != overrides_.end()) found = over->second;
    else found = environment_(name);
    if (!found || found->empty()) return std::nullopt;
    settings_.given.emplace_back(name, *found);
    return found;
  }

  /// `allowed`: where the table's word says too little.
  void complain(std::string_view name, std::string_view value, std::string_view allowed = {}) {
    const OptionSpec& spec = spec_of(name);
    std::string text =
        fmt::format("{}={}: not understood; allowed: {}", name, value, allowed.empty() ? spec.values : allowed);
    if (on_wrong_ == OnWrongValue::kUseDefault)
      text += spec.default_value.empty() ? "; it is ignored" : fmt::format("; using {}", spec.default_value);
    complaints_.push_back(std::move(text));
  }

  /// The value that `words` gives to the text; `fallback` where it is not set or wrong.
  template <typename Value>
  Value choose(std::string_view name, Value fallback, std::initializer_list<std::pair<std::string_view, Value>> words) {
    const auto given = text(name);
    if (!given) return fallback;
    for (const auto& [word, value] : words)
      if (*given == word) return value;
    complain(name, *given);
    return fallback;
  }

  bool on_off(std::string_view name, bool fallback) {
    return choose<bool>(name, fallback,
                        {{"on", true}, {"1", true}, {"true", true}, {"off", false}, {"0", false}, {"false", false}});
  }

 private:
  const std::map<std::string, std::string, std::less<>>& overrides_;
  const OptionSource& environment_;
  std::vector<std::string>& complaints_;
  OnWrongValue on_wrong_;
  Settings& settings_;
};

void read_log(Reader& reader, Settings& settings) {
  const auto given = reader.text("GPUDIAG_LOG");
  if (!given || *given == "on" || *given == "1") return;
  if (*given == "every") settings.log = LogMode::kEvery;
  else if (*given == "off" || *given == "0") settings.log = LogMode::kOff;
  else settings.log_file = *given;
}

void read_rules(Reader& reader, Settings& settings) {
  const std::string rules = reader.text("GPUDIAG_RANGES").value_or("");
  for (std::size_t at = 0; at < rules.size();) {
    const std::size_t end = std::min(rules.find(';', at), rules.size());
    if (end > at) settings.ranges.push_back(rules.substr(at, end - at));
    at = end + 1;
  }
}

void read_budget(Reader& reader, Settings& settings) {
  const auto given = reader.text("GPUDIAG_BUDGET");
  if (!given) return;
  const auto percent = parse<double>(*given);
  if (percent && *percent >= 0.1 && *percent <= 100.0) settings.budget_percent = *percent;
  else reader.complain("GPUDIAG_BUDGET", *given, "a number from 0.1 to 100");
}

void read_rank(Reader& reader, Settings& settings) {
  const auto given = reader.text("GPUDIAG_RANK");
  if (!given) return;
  settings.rank = parse<std::uint32_t>(*given);
  if (!settings.rank) reader.complain("GPUDIAG_RANK", *given, "a whole number from 0 on");
}

void read_peers(Reader& reader, Settings& settings) {
  const auto peers = reader.text("GPUDIAG_PEERS");
  if (peers && (*peers == "off" || *peers == "0")) settings.peers_wanted = false;
  else if (peers && *peers != "on" && *peers != "1") {
    if (peers->find(':') != std::string::npos) settings.peers = *peers;
    else reader.complain("GPUDIAG_PEERS", *peers);
  }
  const auto stuck = reader.text("GPUDIAG_STUCK");
  if (!stuck) return;
  const auto given = parse<double>(*stuck);
  if (given && *given >= 0.5 && *given <= 86'400) settings.stuck_after = {static_cast<std::int64_t>(*given * 1e9)};
  else reader.complain("GPUDIAG_STUCK", *stuck, "a number of seconds from 0.5 to 86400");
}

}  // namespace

std::span<const OptionSpec> option_table() { return kTable; }

Settings read_settings(const std::map<std::string, std::string, std::less<>>& overrides,
                       const OptionSource& environment, std::vector<std::string>& complaints,
                       OnWrongValue on_wrong) {
  Settings settings;
  Reader reader{overrides, environment, complaints, on_wrong, settings};
  settings.enabled = reader.on_off("GPUDIAG_ENABLED", true);
  read_log(reader, settings);
  settings.dir = reader.text("GPUDIAG_DIR").value_or("");
  settings.record = reader.on_off("GPUDIAG_RECORD", false);
  settings.callbacks = reader.choose<Choice>(
      "GPUDIAG_CALLBACKS", Choice::kAuto, {{"auto", Choice::kAuto}, {"on", Choice::kOn}, {"off", Choice::kOff}});
  settings.nvtx = reader.on_off("GPUDIAG_NVTX", true);
  settings.nccl = reader.choose<Choice>(
      "GPUDIAG_NCCL", Choice::kAuto, {{"auto", Choice::kAuto}, {"on", Choice::kOn}, {"off", Choice::kOff}});
  settings.watch = reader.on_off("GPUDIAG_WATCH", true);
  read_rules(reader, settings);
  settings.iteration = reader.text("GPUDIAG_ITERATION").value_or("");
  settings.pattern = reader.on_off("GPUDIAG_PATTERN", true);
  settings.cupti = reader.text("GPUDIAG_CUPTI").value_or("");
  read_budget(reader, settings);
  read_rank(reader, settings);
  read_peers(reader, settings);
  if (settings.record && settings.dir.empty()) {
    complaints.emplace_back("GPUDIAG_RECORD=on: needs GPUDIAG_DIR to write into; recording nothing");
    settings.record = false;
  }
  return settings;
}

std::uint32_t rank_of_launcher(const OptionSource& environment) {
  for (const std::string_view name : kRankVariables)
    if (const auto text = environment(name))
      if (const auto rank = parse<std::uint32_t>(*text)) return *rank;
  return 0;
}

std::optional<std::string> environment_variable(std::string_view name) {
  const char* value = std::getenv(std::string{name}.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace gpudiag
