// SPDX-License-Identifier: Apache-2.0
// ranks_table: how often the comparison of ranks names the right one, by layout and fault.
//
//   ranks_table --ranks 2048 --jobs 10
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "fmt/format.h"
#include "ranks/judge.hpp"

namespace {

using ranks_model::Fault;
using ranks_model::Layout;

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

struct Sums {
  int jobs = 0;
  int rank_right = 0;
  int kind_right = 0;
  int alarms = 0;
};

}  // namespace

int main(int argc, char** argv) {
  ranks_model::Options options;
  int jobs = 3;
  bool verbose = false;
  std::string only_layout;
  std::string only_fault;
  CLI::App app{"How often the comparison of ranks names the right one"};
  app.add_option("--ranks", options.ranks, "Ranks of each job, a multiple of 32");
  app.add_option("--jobs", jobs, "Jobs of each layout and fault");
  app.add_option("--iterations", options.iterations, "Iterations of each job");
  app.add_option("--noise", options.noise, "Relative noise of each piece of work");
  app.add_option("--layout", only_layout, "data, tensor or pipeline alone");
  app.add_option("--fault", only_fault, "One fault alone");
  app.add_option("--seed", options.seed, "Of the first job");
  app.add_flag("--verbose", verbose, "Say what was found where it is wrong");
  CLI11_PARSE(app, argc, argv);

  double longest = 0;
  double busiest = 0;
  double made = 0;
  Sums faulty;
  Sums healthy;
  const std::uint64_t first_seed = options.seed;
  fmt::print("{} ranks, {} iterations, {} jobs a cell: the guilty rank named / and what is wrong with it\n\n{:<14}",
             options.ranks, options.iterations, jobs, "");
  for (const auto layout : ranks_model::kLayoutNames) fmt::print("{:>16}", layout);
  fmt::print("\n");
  for (std::size_t f = 0; f < ranks_model::kFaultNames.size(); ++f) {
    if (!only_fault.empty() && only_fault != ranks_model::kFaultNames[f]) continue;
    fmt::print("{:<14}", ranks_model::kFaultNames[f]);
    for (std::size_t l = 0; l < ranks_model::kLayoutNames.size(); ++l) {
      if (!only_layout.empty() && only_layout != ranks_model::kLayoutNames[l]) continue;
      Sums sums;
      for (int j = 0; j < jobs; ++j) {
        options.fault = static_cast<Fault>(f);
        options.layout = static_cast<Layout>(l);
        options.seed = first_seed + static_cast<std::uint64_t>(j) * 101 + f * 7 + l * 3;
        const auto before = std::chrono::steady_clock::now();
        const ranks_model::Job job = ranks_model::make_job(options);
        made = std::max(made, seconds_since(before));
        const auto start = std::chrono::steady_clock::now();
        const double processor = processor_seconds();
        const gpudiag::JobReport report = gpudiag::analyze_job(job.ranks);
        longest = std::max(longest, seconds_since(start));
        busiest = std::max(busiest, processor_seconds() - processor);
        const ranks_model::Verdict verdict = judge(job, options.fault, report);
        ++sums.jobs;
        sums.rank_right += verdict.rank_right ? 1 : 0;
        sums.kind_right += verdict.kind_right ? 1 : 0;
        sums.alarms += verdict.false_alarm ? 1 : 0;
        if (verbose && !verdict.kind_right)
          fmt::print(stderr, "  {} {} seed {}: step {:.1f} ms, guilty {} strength {:.2f} period {}; said: {}\n",
                     ranks_model::kLayoutNames[l], ranks_model::kFaultNames[f], options.seed, job.step_ms,
                     job.truth.guilty.empty() ? -1 : static_cast<int>(job.truth.guilty[0]), job.truth.strength,
                     job.truth.period, verdict.said.empty() ? "nothing" : verdict.said);
      }
      fmt::print("{:>16}", fmt::format("{}/{} of {}", sums.rank_right, sums.kind_right, sums.jobs));
      std::fflush(stdout);
      Sums& total = options.fault == Fault::kNone ? healthy : faulty;
      total.jobs += sums.jobs;
      total.rank_right += sums.rank_right;
      total.kind_right += sums.kind_right;
      total.alarms += sums.alarms;
    }
    fmt::print("\n");
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto percent = [](int part, int whole) { return whole > 0 ? 100.0 * part / whole : 100.0; };
  fmt::print("\nfaulty jobs: rank {:.1f} %, kind too {:.1f} % of {}; healthy jobs: false alarms {:.1f} % of {}\n"
             "longest analysis {:.2f} s, {:.2f} s of processor time (making the job {:.2f} s); memory at most {} MiB, the job's summaries included\n",
             percent(faulty.rank_right, faulty.jobs), percent(faulty.kind_right, faulty.jobs), faulty.jobs,
             percent(healthy.alarms, healthy.jobs), healthy.jobs, longest, busiest, made, used.ru_maxrss / 1024);
  return 0;
}
