// SPDX-License-Identifier: Apache-2.0
//
// A training job that knows nothing of gpudiag: it marks its loop by NVTX, as many trainers do for
// any profiler. README.md shows how gpudiag is put around it.
#include <nvtx3/nvToolsExt.h>

#include "trainer.hpp"

namespace {

class NvtxMarks : public Marks {
 public:
  void begin(Phase phase) override { nvtxRangePushA(name(phase)); }
  void end(Phase) override { nvtxRangePop(); }

 private:
  static const char* name(Phase phase) {
    switch (phase) {
      case Phase::kStep: return "step";
      case Phase::kNextBatch: return "wait_for_batch";
      case Phase::kForward: return "forward";
      case Phase::kBackward: return "backward";
      case Phase::kOptimizer: return "optimizer";
      case Phase::kCheckpoint: return "checkpoint";
    }
    return "";
  }
};

}  // namespace

int main(int argc, char** argv) {
  TrainerOptions options;
  switch (parse_options(argc, argv, options)) {
    case ParseOutcome::kHelp: return 0;
    case ParseOutcome::kError: return 2;
    case ParseOutcome::kRun: break;
  }
  NvtxMarks marks;
  Trainer trainer(options, marks);
  trainer.train();
  return 0;
}
