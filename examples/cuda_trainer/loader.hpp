// SPDX-License-Identifier: Apache-2.0
//
// The input pipeline: threads that prepare batches in pinned memory, ahead of the training loop.
// Worker w makes the batches w, w + workers, …, and the loop takes them in this order, so a run
// sees the same batches whatever the threads' timing.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "options.hpp"

// One batch in pinned host memory.
struct Batch {
  long index = 0;
  float* inputs = nullptr;  // batch × inputs, row after row
  int* labels = nullptr;    // batch
};

// One loader thread with its bounded store of batches.
class LoaderWorker {
 public:
  LoaderWorker(const TrainerOptions& options, long first_index);
  ~LoaderWorker();
  LoaderWorker(const LoaderWorker&) = delete;
  LoaderWorker& operator=(const LoaderWorker&) = delete;

  // The worker's next batch; blocks until it is ready.
  Batch* take();
  // Gives a batch back, to be filled anew. The GPU must have copied it.
  void give_back(Batch* batch);

 private:
  void run();
  Batch* wait_for_free();
  void fill(Batch& batch) const;

  const TrainerOptions options_;
  long next_index_;
  std::vector<Batch> batches_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Batch*> free_;
  std::deque<Batch*> ready_;
  bool stopping_ = false;
  std::thread thread_;
};

class Loader {
 public:
  explicit Loader(const TrainerOptions& options);

  // The next batch in order; blocks until it is ready.
  Batch* next();
  void give_back(Batch* batch);

 private:
  std::vector<std::unique_ptr<LoaderWorker>> workers_;
  long next_index_ = 0;
};
