// SPDX-License-Identifier: Apache-2.0
// Prints how near the engine comes to the truth, a line for each trouble of each scenario.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "kineto_export.hpp"
#include "scenarios.hpp"

namespace {

using namespace gpudiag::truth;

/// Over all groups.
struct Errors {
  std::vector<double> what_if;  ///< of each cause, in % of wall
  double unknown = 0, idle = 0;
  std::size_t leading = 0, leading_right = 0;
  std::string leading_wrong;
  std::size_t both = 0, both_right = 0;
  std::string both_wrong;

  double quantile(double q) {
    if (what_if.empty()) return 0;
    std::sort(what_if.begin(), what_if.end());
    return what_if[static_cast<std::size_t>(q * static_cast<double>(what_if.size() - 1))];
  }
  void print() {
    fmt::print("\nWhat-if: error of the replay's cost in % of wall: median {:.2f}, P90 {:.2f}, largest {:.2f}, over {} causes\n",
               quantile(0.5), quantile(0.9), quantile(1), what_if.size());
    fmt::print("Unknown: {:.2f} % of all idle time\n", idle > 0 ? 100 * unknown / idle : 0.0);
    fmt::print("Leading finding: right in {} of {} jobs\n{}", leading_right, leading, leading_wrong);
    fmt::print("Two removed at once, by the replay's answer: right in {} of {} pairs that it was asked of\n{}", both_right,
               both, both_wrong);
  }
};

struct Total {
  std::size_t troubles = 0, replay = 0, charge = 0, others = 0, right = 0;

  void add(const Verdict& verdict) {
    ++troubles;
    replay += verdict.replay_right() ? 1 : 0;
    charge += verdict.charge_right() ? 1 : 0;
    others += verdict.others_right() ? 1 : 0;
    right += verdict.right() ? 1 : 0;
  }
};

class Table {
 public:
  Table(bool markdown, bool failures_only) : markdown_(markdown), failures_only_(failures_only) {}

  void heading(std::string_view group) {
    if (markdown_) {
      fmt::print(
          "\n### {}\n\n| scenario | cause | true cost | replay | charge | allowed | largest other "
          "change | right |\n"
          "|---|---|---:|---:|---:|---:|---:|---|\n",
          group);
    } else {
      fmt::print("\n{}\n{:<34} {:<17} {:>7} {:>7} {:>7} {:>15}  {:<26} {}\n", group, "scenario",
                 "cause", "true", "replay", "charge", "allowed", "largest other change", "right");
    }
  }

  void add(const Scenario& scenario, const Verdict& verdict) {
    total_.add(verdict);
    if (failures_only_ && verdict.right()) return;
    auto share = [&](double figure) { return 100.0 * figure / verdict.wall; };
    const std::string allowed =
        fmt::format("{:.1f} to {:.1f}", share(verdict.least_charge), share(verdict.most_charge));
    const std::string other =
        verdict.worst_other.empty()
            ? std::string{"–"}
            : fmt::format("{} {:+.1f}", verdict.worst_other, share(verdict.worst_change));
    fmt::print(
        fmt::runtime(markdown_ ? "| {} | {} | {:.1f} | {:.1f} | {:.1f} | {} | {} | {} |\n"
                               : "{:<34} {:<17} {:>7.1f} {:>7.1f} {:>7.1f} {:>15}  {:<26} {}\n"),
        scenario.setting, name_of(verdict.trouble), share(verdict.true_cost),
        share(verdict.replay_cost), share(verdict.charge), allowed, other, answer(verdict));
  }

  Total end() {
    fmt::print(
        "{}replay cost within 1 %: {} of {} causes; charge: {}; every other category: {}; all of "
        "it: {}\n",
        markdown_ ? "\n" : "", total_.replay, total_.troubles, total_.charge, total_.others,
        total_.right);
    std::fflush(stdout);
    return std::exchange(total_, {});
  }

 private:
  static std::string answer(const Verdict& verdict) {
    if (verdict.right()) return "yes";
    std::string wrong = "no:";
    if (!verdict.with.windows_agree) wrong += " windows";
    if (!verdict.with.identity_holds) wrong += " identity";
    if (verdict.with.valid != verdict.with.iterations) wrong += " invalid";
    if (!verdict.replay_right()) wrong += " replay";
    if (!verdict.charge_right()) wrong += " charge";
    if (!verdict.others_right()) wrong += " others";
    return wrong;
  }

  bool markdown_;
  bool failures_only_;
  Total total_;
};

void judge_findings(Errors& errors, const Scenario& scenario) {
  if (const auto leading = judge_leading(scenario)) {
    ++errors.leading;
    errors.leading_right += leading->right ? 1 : 0;
    if (!leading->right)
      errors.leading_wrong += fmt::format("- {}: {} and not {}\n", name_of(scenario), leading->found, leading->wanted);
  }
  if (const auto both = judge_both(scenario)) {
    ++errors.both;
    errors.both_right += both->right() ? 1 : 0;
    if (!both->right())
      errors.both_wrong += fmt::format("- {}: {:.1f} % and not {:.1f} %\n", name_of(scenario),
                                       100 * both->replay_cost / both->wall, 100 * both->true_cost / both->wall);
  }
}

void judge_all(Errors& errors, Table& table, std::string_view group, const std::vector<Scenario>& scenarios,
               const std::string& only, bool explained) {
  table.heading(group);
  for (const Scenario& scenario : scenarios) {
    if (name_of(scenario).find(only) == std::string::npos) continue;
    for (const Verdict& verdict : judge(scenario)) {
      table.add(scenario, verdict);
      errors.what_if.push_back(100 * std::abs(verdict.replay_cost - verdict.true_cost) / verdict.wall);
      errors.unknown += verdict.with.charge[static_cast<std::size_t>(gpudiag::Cause::kUnknown)];
      errors.idle += verdict.with.engine_idle;
      if (explained) fmt::print("    {}\n", explain(verdict));
    }
    judge_findings(errors, scenario);
  }
  table.end();
}

// Each single trouble with and without, for tests/truth/other_tools.py.
int write_traces(const std::string& folder, const std::string& only) {
  std::vector<Scenario> jobs = sub_cause_scenarios();
  for (const Scenario& scenario : basic_scenarios())
    if (scenario.setting != "background_copier") jobs.push_back(scenario);
  std::string index = "job\tcause\ttrue\tcharge\twall_us\titerations\twith\twithout\n";
  int number = 0;
  for (const Scenario& scenario : jobs) {
    if (name_of(scenario).find(only) == std::string::npos) continue;
    const Verdict verdict = judge(scenario).front();
    const std::string with = fmt::format("{}.with.json", ++number);
    const std::string without = fmt::format("{}.without.json", number);
    export_kineto(scenario, scenario.troubles, folder + "/" + with);
    export_kineto(scenario, {}, folder + "/" + without);
    const auto share = [&](double figure) { return 100.0 * figure / verdict.wall; };
    std::string cause{gpudiag::name_of(verdict.cause)};
    if (scenario.sub_cause != gpudiag::SubCause::kNone)
      cause += fmt::format(" ({})", gpudiag::name_of(scenario.sub_cause));
    index += fmt::format("{}\t{}\t{:.1f}\t{:.1f}\t{:.3f}\t{}\t{}\t{}\n", name_of(scenario), cause,
                         share(verdict.true_cost), share(verdict.charge), verdict.wall / 1e3,
                         scenario.shape.iterations, with, without);
  }
  std::FILE* file = std::fopen((folder + "/index.tsv").c_str(), "w");
  if (file == nullptr) return 1;
  std::fputs(index.c_str(), file);
  return std::fclose(file) == 0 ? 0 : 1;
}

void judge_oddities(const std::string& only) {
  fmt::print("\nHarmless oddities\n\n");
  std::size_t right = 0, all = 0;
  for (const Oddity& oddity : oddities()) {
    const std::string name = oddity.plain.troubles.empty() ? "nothing in " + oddity.plain.setting
                                                           : name_of(oddity.plain);
    if (name.find(only) == std::string::npos) continue;
    const Difference difference = compare(oddity.plain, oddity.odd);
    ++all;
    right += difference.right() ? 1 : 0;
    fmt::print("- {}: {}: {}\n", name, explain(difference), difference.right() ? "right" : "wrong");
  }
  fmt::print("\nright: {} of {}\n", right, all);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Judges the attribution engine by counterfactual: each simulated job runs with and without "
      "its trouble.\n"
      "Figures are per cent of an iteration's wall time."};
  std::string format = "text";
  std::string only;
  std::uint64_t seeds = 200;
  std::uint64_t first_seed = 1;
  bool failures_only = false;
  bool explained = false;
  std::string kineto;
  app.add_option("--format", format, "text or markdown")
      ->check(CLI::IsMember({"text", "markdown"}));
  app.add_option("--only", only, "only scenarios whose name (`sync in graphs`) contains this");
  app.add_option("--random", seeds, "how many random jobs")->capture_default_str();
  app.add_option("--first-seed", first_seed, "of the random jobs")->capture_default_str();
  app.add_flag("--failures", failures_only, "print only what is wrong");
  app.add_flag("--explain", explained, "print the whole ledger of each job");
  app.add_option("--kineto", kineto, "write the jobs into this folder as torch.profiler's traces, and nothing else")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  if (!kineto.empty()) return write_traces(kineto, only);

  Table table(format == "markdown", failures_only);
  Errors errors;
  judge_all(errors, table, "Basic", basic_scenarios(), only, explained);
  judge_all(errors, table, "Sub-causes", sub_cause_scenarios(), only, explained);
  judge_all(errors, table, "Harder settings", hard_scenarios(), only, explained);
  judge_all(errors, table, "Two troubles", pair_scenarios(), only, explained);
  judge_all(errors, table, "Harmless", harmless_scenarios(), only, explained);
  judge_oddities(only);
  std::vector<Scenario> random;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed)
    random.push_back(random_scenario(seed));
  judge_all(errors, table, "Random jobs", random, only, explained);
  errors.print();
}
