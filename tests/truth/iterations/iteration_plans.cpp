// SPDX-License-Identifier: Apache-2.0
#include "iterations/iteration_judge.hpp"

namespace gpudiag::truth {
namespace {

JobPlan plan(std::string name, std::size_t launches) {
  JobPlan made;
  made.name = std::move(name);
  made.launches = launches;
  made.iterations = launches >= 10'000 ? 8 : launches >= 1'000 ? 14 : 60;
  made.before = std::min<std::size_t>(200, launches / 2);
  return made;
}

template <typename Change>
void add(std::vector<JobPlan>& plans, const std::string& name, std::size_t launches, Change change) {
  JobPlan made = plan(name, launches);
  change(made);
  plans.push_back(made);
}

void add_plain(std::vector<JobPlan>& plans) {
  for (const std::size_t launches : {3, 4, 7, 30, 100, 400, 1'500, 6'000, 20'000}) {
    add(plans, "plain", launches, [](JobPlan&) {});
    if (launches < 12) continue;
    add(plans, "fused optimizer", launches, [](JobPlan& p) { p.optimizer = Optimizer::kFused; });
    add(plans, "named optimizer", launches, [](JobPlan& p) { p.optimizer = Optimizer::kNamed; });
  }
  for (const std::size_t launches : {400, 1'500, 6'000})
    add(plans, "optimizer, kernel by kernel", launches, [](JobPlan& p) { p.optimizer = Optimizer::kEach; });
  for (const std::size_t launches : {3, 30, 400})
    add(plans, "unknown optimizer", launches, [](JobPlan& p) { p.optimizer = Optimizer::kUnknown; });
  add(plans, "unknown optimizer", 20'000, [](JobPlan& p) { p.optimizer = Optimizer::kUnknown; });
  for (const std::size_t launches : {100, 1'500})
    add(plans, "no copies, no wait", launches, [](JobPlan& p) { p.copies = p.waits = false; });
  add(plans, "loss read each time", 400, [](JobPlan& p) { p.reads_loss = true; });
  add(plans, "first iteration tries kernels", 400, [](JobPlan& p) { p.warm_up = 400; });
  add(plans, "gradients cleared by foreach", 400, [](JobPlan& p) { p.zero_first = true; });
  add(plans, "activations recomputed", 1'500, [](JobPlan& p) { p.recompute = true; });
}

void add_accumulation(std::vector<JobPlan>& plans) {
  for (const std::size_t micro : {2, 4, 16}) {
    for (const std::size_t launches : {400, 3'000, 20'000}) {
      add(plans, "accumulation " + std::to_string(micro), launches, [&](JobPlan& p) { p.micro_batches = micro; });
      add(plans, "accumulation " + std::to_string(micro) + ", fused", launches, [&](JobPlan& p) {
        p.micro_batches = micro;
        p.optimizer = Optimizer::kFused;
      });
    }
  }
  add(plans, "accumulation 4, unknown optimizer", 800, [](JobPlan& p) {
    p.micro_batches = 4;
    p.optimizer = Optimizer::kUnknown;
  });
  for (const std::size_t micro : {4, 8})
    add(plans, "pipeline " + std::to_string(micro), 2'000, [&](JobPlan& p) {
      p.micro_batches = micro;
      p.pipeline = true;
    });
}

void add_networks(std::vector<JobPlan>& plans) {
  for (const std::size_t launches : {200, 1'500, 8'000}) {
    add(plans, "two networks", launches, [](JobPlan& p) { p.networks = 2; });
    add(plans, "two networks, same kernels", launches, [](JobPlan& p) {
      p.networks = 2;
      p.same_kernels = true;
    });
  }
  add(plans, "two networks, fused", 1'500, [](JobPlan& p) {
    p.networks = 2;
    p.optimizer = Optimizer::kFused;
  });
}

void add_phases(std::vector<JobPlan>& plans) {
  for (const std::size_t every : {2, 5, 10}) {
    for (const std::size_t launches : {100, 400, 3'000})
      add(plans, "evaluation every " + std::to_string(every), launches, [&](JobPlan& p) { p.evaluate_every = every; });
    add(plans, "long evaluation every " + std::to_string(every), 400, [&](JobPlan& p) {
      p.evaluate_every = every;
      p.evaluation_batches = 60;
    });
    add(plans, "log every " + std::to_string(every), 400, [&](JobPlan& p) { p.log_every = every; });
    add(plans, "checkpoint every " + std::to_string(every), 400, [&](JobPlan& p) { p.checkpoint_every = every; });
  }
  add(plans, "accumulation and evaluation", 1'200, [](JobPlan& p) {
    p.micro_batches = 4;
    p.evaluate_every = 5;
  });
  add(plans, "unknown optimizer, evaluation", 400, [](JobPlan& p) {
    p.optimizer = Optimizer::kUnknown;
    p.evaluate_every = 20;
  });
}

void add_varying(std::vector<JobPlan>& plans) {
  for (const std::size_t launches : {100, 1'500, 8'000}) {
    add(plans, "sequence lengths", launches, [](JobPlan& p) { p.lengths = true; });
    add(plans, "sequence lengths choose kernels", launches, [](JobPlan& p) {
      p.lengths = true;
      p.varying = 0.2;
    });
  }
  add(plans, "unrolled lengths", 600, [](JobPlan& p) { p.unrolled = true; });
  add(plans, "lengths and accumulation", 1'600, [](JobPlan& p) {
    p.lengths = true;
    p.micro_batches = 4;
  });
}

void add_graphs(std::vector<JobPlan>& plans) {
  const auto graph = [](JobPlan& p) { p.graph = true, p.iterations = 120; };
  add(plans, "graph", 3, graph);
  add(plans, "graph, loss read", 4, [&](JobPlan& p) { graph(p), p.reads_loss = true; });
  add(plans, "graph alone", 1, [&](JobPlan& p) { graph(p), p.graph_alone = true, p.before = 0; });
  add(plans, "graph, unknown optimizer", 3, [&](JobPlan& p) { graph(p), p.optimizer = Optimizer::kUnknown; });
  add(plans, "graph and evaluation", 3, [&](JobPlan& p) { graph(p), p.evaluate_every = 7; });
}

void add_noise(std::vector<JobPlan>& plans, std::uint64_t seeds) {
  const std::vector<JobPlan> quiet = plans;
  for (const JobPlan& one : quiet) {
    // One launch in a hundred of three is an iteration in thirty that has no such triple left.
    if (one.launches < 12 || one.graph) continue;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      JobPlan noisy = one;
      noisy.noise = 0.01;
      noisy.seed = seed;
      plans.push_back(noisy);
    }
  }
  for (const std::size_t launches : {3, 4, 7})
    add(plans, "plain", launches, [](JobPlan& p) { p.noise = 0.01, p.iterations = 300; });
}

void add_none(std::vector<JobPlan>& plans) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    add(plans, "no iterations", 300, [&](JobPlan& p) { p.loops = false, p.seed = seed; });
  }
}

}  // namespace

std::vector<JobPlan> iteration_plans(std::uint64_t seeds) {
  std::vector<JobPlan> plans;
  add_plain(plans);
  add_accumulation(plans);
  add_networks(plans);
  add_phases(plans);
  add_varying(plans);
  add_graphs(plans);
  add_noise(plans, seeds);
  add_none(plans);
  return plans;
}

}  // namespace gpudiag::truth
