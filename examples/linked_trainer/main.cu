// SPDX-License-Identifier: Apache-2.0
//
// The trainer of ../cuda_trainer with gpudiag linked in: it starts a session itself, ends each
// iteration by step() and says outright which ranges load data and write checkpoints, so no table of
// range names has to guess. Nothing has to be put around the program when it is started.
//
// Build it alone, in this folder, against an installed gpudiag in $PREFIX:
//
//   nvcc -std=c++17 -cudart shared -I../cuda_trainer -I$PREFIX/include -o linked_trainer main.cu
//     ../cuda_trainer/{loader,model,replica,trainer}.cu ../cuda_trainer/options.cpp
//     -L$PREFIX/lib -lgpudiag -Xlinker -rpath=$PREFIX/lib          (one line)
#include <cstdio>

#include "gpudiag/gpudiag.hpp"
#include "trainer.hpp"

namespace {

class GpudiagMarks : public Marks {
 public:
  void begin(Phase phase) override {
    switch (phase) {
      case Phase::kStep: break;  // said when it ends
      case Phase::kNextBatch: push("wait_for_batch", GPUDIAG_CAUSE_DATA_LOADING); break;
      case Phase::kForward: push("forward", GPUDIAG_CAUSE_NONE); break;
      case Phase::kBackward: push("backward", GPUDIAG_CAUSE_NONE); break;
      case Phase::kOptimizer: push("optimizer", GPUDIAG_CAUSE_NONE); break;
      case Phase::kCheckpoint: push("checkpoint", GPUDIAG_CAUSE_CHECKPOINT); break;
    }
  }

  void end(Phase phase) override {
    if (phase == Phase::kStep) {
      gpudiag::step();
    } else {
      gpudiag_range_pop();
    }
  }

 private:
  // Mark ends what it began, so the C calls stand here where a gpudiag::Range would in plain code.
  static void push(const char* name, gpudiag_cause cause) { gpudiag_range_push(name, cause); }
};

// The ledger is at hand while the job runs, for a log or a dashboard of the job's own.
void print_last_iteration() {
  const auto last = gpudiag::last();
  if (!last || last->wall_ns <= 0) return;
  std::fprintf(stderr, "last iteration: %.3f ms, the GPU idle for %.1f %% of it\n",
               static_cast<double>(last->wall_ns) / 1e6,
               100.0 * static_cast<double>(last->idle_ns) / static_cast<double>(last->wall_ns));
}

}  // namespace

int main(int argc, char** argv) {
  TrainerOptions options;
  switch (parse_options(argc, argv, options)) {
    case ParseOutcome::kHelp: return 0;
    case ParseOutcome::kError: return 2;
    case ParseOutcome::kRun: break;
  }
  const gpudiag::Session session;
  GpudiagMarks marks;
  Trainer trainer(options, marks);
  trainer.train();
  if (options.timing != 0) print_last_iteration();
  return 0;
}
