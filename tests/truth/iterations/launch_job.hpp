// SPDX-License-Identifier: Apache-2.0
// Flow: [launch jobs] -> detector under test; judge compares.
// Sequences of launches as training jobs make them, with what is true of them: where each iteration
// begins and ends. Knows nothing of the detector.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpudiag::truth {

enum class Made : std::uint8_t { kKernel, kGraph, kToDevice, kToHost, kMemset };

struct MadeLaunch {
  std::string name;          ///< of the kernel, or of a graph's first one
  std::uint64_t shape = 0;
  Made kind = Made::kKernel;
  std::int64_t pause_ns = 0; ///< of the host before the call
  bool updates = false;      ///< a graph with an optimizer's kernel in it
};

/// [begin, end) of the launches is one iteration.
struct TrueIteration {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct LaunchJob {
  std::vector<MadeLaunch> launches;
  std::vector<TrueIteration> iterations;
};

enum class Optimizer : std::uint8_t {
  kForeach,   ///< a dozen multi_tensor_apply_kernel
  kFused,     ///< one FusedAdam
  kEach,      ///< elementwise kernels, three for each parameter
  kNamed,     ///< sgd_update for each parameter
  kUnknown,   ///< a few kernels of names that say nothing
};

/// What a job does. Of `launches` an iteration has about as many as it says.
struct JobPlan {
  std::string name;
  std::size_t launches = 100;
  std::size_t iterations = 40;
  std::size_t micro_batches = 1;
  Optimizer optimizer = Optimizer::kForeach;
  std::size_t networks = 1;      ///< that take turns in one iteration, each with an optimizer of its own
  bool same_kernels = false;     ///< the networks differ in grids alone
  std::size_t evaluate_every = 0;
  std::size_t evaluation_batches = 6;
  std::size_t log_every = 0;     ///< a metric is reduced and read
  std::size_t checkpoint_every = 0;
  double varying = 0;            ///< of the kernels of a layer, those whose name goes by the sequence's length
  bool lengths = false;          ///< grids vary from batch to batch
  bool unrolled = false;         ///< and the number of launches with them
  bool graph = false;
  bool graph_alone = false;      ///< nothing but the graph's launch
  bool pipeline = false;         ///< 1F1B over the micro-batches
  bool copies = true;            ///< the batch is copied to the device by the loop's thread
  bool zero_first = false;       ///< gradients are cleared by a foreach kernel before the backward pass
  bool recompute = false;        ///< activation checkpointing
  bool waits = true;             ///< for the batch
  bool reads_loss = false;       ///< .item() in each iteration
  std::size_t warm_up = 0;       ///< kernels tried in the first iteration
  std::size_t before = 20;       ///< launches that initialise the model
  double noise = 0;              ///< of the launches, lost or too many
  std::uint64_t seed = 1;
  bool loops = true;             ///< false: there are no iterations in it
};

LaunchJob make_job(const JobPlan& plan);

}  // namespace gpudiag::truth
