// SPDX-License-Identifier: Apache-2.0
// Prints how near the engine comes to the truth, a line for each trouble of each scenario.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "scenarios.hpp"

namespace {

using namespace gpudiag::truth;

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

void judge_all(Table& table, std::string_view group, const std::vector<Scenario>& scenarios,
               const std::string& only, bool explained) {
  table.heading(group);
  for (const Scenario& scenario : scenarios) {
    if (name_of(scenario).find(only) == std::string::npos) continue;
    for (const Verdict& verdict : judge(scenario)) {
      table.add(scenario, verdict);
      if (explained) fmt::print("    {}\n", explain(verdict));
    }
  }
  table.end();
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
  app.add_option("--format", format, "text or markdown")
      ->check(CLI::IsMember({"text", "markdown"}));
  app.add_option("--only", only, "only scenarios whose name (`sync in graphs`) contains this");
  app.add_option("--random", seeds, "how many random jobs")->capture_default_str();
  app.add_option("--first-seed", first_seed, "of the random jobs")->capture_default_str();
  app.add_flag("--failures", failures_only, "print only what is wrong");
  app.add_flag("--explain", explained, "print the whole ledger of each job");
  CLI11_PARSE(app, argc, argv);

  Table table(format == "markdown", failures_only);
  judge_all(table, "Basic", basic_scenarios(), only, explained);
  judge_all(table, "Harder settings", hard_scenarios(), only, explained);
  judge_all(table, "Two troubles", pair_scenarios(), only, explained);
  judge_all(table, "Harmless", harmless_scenarios(), only, explained);
  judge_oddities(only);
  std::vector<Scenario> random;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed)
    random.push_back(random_scenario(seed));
  judge_all(table, "Random jobs", random, only, explained);
}
