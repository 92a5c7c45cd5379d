// SPDX-License-Identifier: Apache-2.0
#include "loader.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "cuda_check.hpp"

namespace {

constexpr size_t kNoiseValues = size_t{1} << 20;

uint32_t next_random(uint32_t state) { return state * 1664525U + 1013904223U; }

// Uniform in ±0.5; the samples are slices of it, which costs a loader less than drawing each.
const std::vector<float>& noise_table() {
  static const std::vector<float> table = [] {
    std::vector<float> values(kNoiseValues);
    uint32_t state = 1;
    for (float& value : values) {
      state = next_random(state);
      value = static_cast<float>(state >> 8) / 16777216.0F - 0.5F;
    }
    return values;
  }();
  return table;
}

}  // namespace

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
  const std::vector<float>& noise = noise_table();
  const size_t places = noise.size() - static_cast<size_t>(options_.inputs);
  const uint32_t classes = static_cast<uint32_t>(options_.classes);
  uint32_t state = static_cast<uint32_t>(batch.index) * 2654435761U + 1;
  float* features = batch.inputs;
  for (int sample = 0; sample < options_.batch; ++sample) {
    state = next_random(state);
    std::copy_n(noise.data() + (state >> 8) % places, options_.inputs, features);
    state = next_random(state);
    const int label = static_cast<int>((state >> 16) % classes);
    for (int i = label; i < options_.inputs; i += options_.classes) features[i] += 1.0F;
    batch.labels[sample] = label;
    features += options_.inputs;
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
