// SPDX-License-Identifier: Apache-2.0
#include "loader.hpp"

#include <chrono>
#include <cstdint>

#include "cuda_check.hpp"

LoaderWorker::LoaderWorker(const TrainerOptions& options, long first_index)
    : options_(options),
      next_index_(first_index),
      // The loop may hold one batch for each device that is still being copied.
      batches_(static_cast<size_t>(options.prefetch + options.devices)) {
  const size_t samples = static_cast<size_t>(options.batch);
  for (Batch& batch : batches_) {
    CUDA_CHECK(cudaMallocHost(&batch.inputs, samples * options.inputs * sizeof(float)));
    CUDA_CHECK(cudaMallocHost(&batch.labels, samples * sizeof(int)));
    free_.push_back(&batch);
  }
  thread_ = std::thread([this] { run(); });
}

LoaderWorker::~LoaderWorker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (Batch& batch : batches_) {
    CUDA_CHECK(cudaFreeHost(batch.inputs));
    CUDA_CHECK(cudaFreeHost(batch.labels));
  }
}

Batch* LoaderWorker::take() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty(); });
  Batch* batch = ready_.front();
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

void LoaderWorker::give_back(Batch* batch) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(batch);
  }
  changed_.notify_all();
}

Batch* LoaderWorker::wait_for_free() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto may_fill = [this] {
    return !free_.empty() && ready_.size() < static_cast<size_t>(options_.prefetch);
  };
  changed_.wait(lock, [&] { return stopping_ || may_fill(); });
  if (stopping_) return nullptr;
  Batch* batch = free_.front();
  free_.pop_front();
  return batch;
}

void LoaderWorker::run() {
  while (Batch* batch = wait_for_free()) {
    batch->index = next_index_;
    next_index_ += options_.workers;
    fill(*batch);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ready_.push_back(batch);
    }
    changed_.notify_all();
  }
}

// Samples whose class shows in their features, so that there is something to learn. The rest of
// loader_ms is slept, as a thread does that waits for storage.
void LoaderWorker::fill(Batch& batch) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.loader_ms);
  uint32_t state = static_cast<uint32_t>(batch.index) * 2654435761U + 1;
  for (int sample = 0; sample < options_.batch; ++sample) {
    state = state * 1664525U + 1013904223U;
    const int label = static_cast<int>((state >> 16) % static_cast<uint32_t>(options_.classes));
    batch.labels[sample] = label;
    float* features = batch.inputs + static_cast<size_t>(sample) * options_.inputs;
    for (int i = 0; i < options_.inputs; ++i) {
      state = state * 1664525U + 1013904223U;
      const float noise = static_cast<float>(state >> 8) / 16777216.0F - 0.5F;
      features[i] = noise + (i % options_.classes == label ? 1.0F : 0.0F);
    }
  }
  std::this_thread::sleep_until(end);
}

Loader::Loader(const TrainerOptions& options) {
  for (int worker = 0; worker < options.workers; ++worker) {
    workers_.push_back(std::make_unique<LoaderWorker>(options, worker));
  }
}

Batch* Loader::next() {
  const size_t worker = static_cast<size_t>(next_index_++) % workers_.size();
  return workers_[worker]->take();
}

void Loader::give_back(Batch* batch) {
  const size_t worker = static_cast<size_t>(batch->index) % workers_.size();
  workers_[worker]->give_back(batch);
}
