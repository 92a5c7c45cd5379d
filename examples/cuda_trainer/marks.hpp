// SPDX-License-Identifier: Apache-2.0
//
// How the training loop names what it does. cuda_trainer marks by NVTX, as trainers do that know
// nothing of gpudiag; linked_trainer calls gpudiag.
#pragma once

enum class Phase { kStep, kNextBatch, kForward, kBackward, kOptimizer, kCheckpoint };

class Marks {
 public:
  virtual ~Marks() = default;
  virtual void begin(Phase phase) = 0;
  virtual void end(Phase phase) = 0;
};

// The calling thread is in `phase` while the object lives.
class Mark {
 public:
  Mark(Marks& marks, Phase phase) : marks_(marks), phase_(phase) { marks_.begin(phase_); }
  ~Mark() { marks_.end(phase_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  Marks& marks_;
  Phase phase_;
};
