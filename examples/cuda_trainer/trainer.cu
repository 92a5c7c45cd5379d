// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

#include "cuda_check.hpp"

namespace {

constexpr float kLearningRate = 0.05F;
constexpr int kTinyValues = 256;
constexpr size_t kWorkspaceBytes = size_t{4} << 20;

using Clock = std::chrono::steady_clock;

// Keeps the calling thread busy, as code between two CUDA calls does.
void work_on_host(int microseconds) {
  const auto end = Clock::now() + std::chrono::microseconds(microseconds);
  while (Clock::now() < end) {
  }
}

bool is_due(int iteration, int every) { return every > 0 && (iteration + 1) % every == 0; }

}  // namespace

Trainer::Trainer(const TrainerOptions& options, Marks& marks)
    : options_(options), marks_(marks), loader_(options) {
  int present = 0;
  CUDA_CHECK(cudaGetDeviceCount(&present));
  if (options_.devices > present) {
    std::fprintf(stderr, "--devices %d: this machine has %d\n", options_.devices, present);
    std::exit(1);
  }
  for (int device = 0; device < options_.devices; ++device) {
    replicas_.push_back(std::make_unique<Replica>(options_, device));
  }
}

void Trainer::train() {
  const auto start = Clock::now();
  for (int iteration = 0; iteration < options_.iterations; ++iteration) step(iteration);
  for (const auto& replica : replicas_) {
    CUDA_CHECK(cudaSetDevice(replica->device));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  const std::chrono::duration<double, std::milli> took = Clock::now() - start;
  std::printf("trained %d iterations\n", options_.iterations);
  if (options_.timing != 0) {
    std::fprintf(stderr, "%.3f ms an iteration\n", took.count() / options_.iterations);
  }
}

void Trainer::step(int iteration) {
  const Mark step_mark(marks_, Phase::kStep);
  for (const auto& replica : replicas_) {
    CUDA_CHECK(cudaSetDevice(replica->device));
    Replica::Input& input = load_batch(*replica, iteration);
    if (options_.graph != 0) {
      launch_graph(*replica, input);
      between_passes(*replica, iteration);
    } else {
      forward(*replica, input);
      between_passes(*replica, iteration);
      backward(*replica, input);
    }
    CUDA_CHECK(cudaEventRecord(input.used, replica->compute));
  }
  if (replicas_.size() > 1) exchange_gradients();
  if (options_.graph == 0) update(*replicas_.front());
  if (replicas_.size() > 1) spread_parameters();
  if (is_due(iteration, options_.log_every)) print_loss(iteration);
  if (options_.logger_ms > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(options_.logger_ms));
  }
  if (is_due(iteration, options_.checkpoint_every)) write_checkpoint(iteration);
}

// Takes the next batch and queues its copy to the device; the compute stream will wait for it.
Replica::Input& Trainer::load_batch(Replica& replica, int iteration) {
  Replica::Input& input = replica.input[iteration % 2];
  if (replica.in_flight != nullptr) {
    // The last batch goes back once it is copied. Its copy waited for the step two before this one,
    // so the loop runs ahead of the device by two steps and no more.
    CUDA_CHECK(cudaEventSynchronize(replica.input[(iteration + 1) % 2].copied));
    loader_.give_back(replica.in_flight);
  }
  {
    const Mark mark(marks_, Phase::kNextBatch);
    replica.in_flight = loader_.next();
  }
  const size_t samples = static_cast<size_t>(options_.batch);
  CUDA_CHECK(cudaStreamWaitEvent(replica.copy, input.used, 0));
  CUDA_CHECK(cudaMemcpyAsync(input.inputs, replica.in_flight->inputs,
                             samples * options_.inputs * sizeof(float), cudaMemcpyHostToDevice,
                             replica.copy));
  CUDA_CHECK(cudaMemcpyAsync(input.labels, replica.in_flight->labels, samples * sizeof(int),
                             cudaMemcpyHostToDevice, replica.copy));
  CUDA_CHECK(cudaEventRecord(input.copied, replica.copy));
  CUDA_CHECK(cudaStreamWaitEvent(replica.compute, input.copied, 0));
  return input;
}

void Trainer::forward(Replica& replica, const Replica::Input& input) {
  const Mark mark(marks_, Phase::kForward);
  for (int i = 0; i < options_.tiny_kernels; ++i) {
    work_on_host(options_.dispatch_us);
    scale_values(replica.tiny_values, kTinyValues, 0.5F, replica.compute);
  }
  if (options_.step_kernel_us > 0) occupy(options_.step_kernel_us, replica.compute);
  for (size_t layer = 0; layer < replica.model->layers(); ++layer) {
    replica.model->forward_layer(layer, input.inputs, replica.compute);
  }
  replica.model->compute_loss(input.labels, replica.compute);
}

void Trainer::backward(Replica& replica, const Replica::Input& input) {
  const Mark mark(marks_, Phase::kBackward);
  for (size_t layer = replica.model->layers(); layer-- > 0;) {
    replica.model->backward_layer(layer, input.inputs, replica.compute);
  }
}

// What real loops do where the loss is known: look at it, get workspace, keep the books. None of it
// costs the GPU anything while the host is ahead; whatever waits for the device ends that.
void Trainer::between_passes(Replica& replica, int iteration) {
  if (is_due(iteration, options_.sync_every)) read_loss(replica);
  if (is_due(iteration, options_.malloc_every)) allocate_workspace();
  work_on_host(options_.host_us);
}

// Adds up all replicas' gradients on the first device.
void Trainer::exchange_gradients() {
  Replica& first = *replicas_.front();
  const size_t count = first.model->parameter_count();
  for (size_t i = 1; i < replicas_.size(); ++i) {
    Replica& other = *replicas_[i];
    CUDA_CHECK(cudaSetDevice(other.device));
    CUDA_CHECK(cudaMemcpyPeerAsync(other.peer_gradients, first.device, other.model->gradients(),
                                   other.device, count * sizeof(float), other.compute));
    CUDA_CHECK(cudaEventRecord(other.gradients_ready, other.compute));
    CUDA_CHECK(cudaSetDevice(first.device));
    CUDA_CHECK(cudaStreamWaitEvent(first.compute, other.gradients_ready, 0));
    add_gradients(first.model->gradients(), other.peer_gradients, count, first.compute);
  }
  CUDA_CHECK(cudaSetDevice(first.device));
}

void Trainer::update(Replica& replica) {
  const Mark mark(marks_, Phase::kOptimizer);
  const float rate = kLearningRate / static_cast<float>(replicas_.size());
  for (size_t layer = 0; layer < replica.model->layers(); ++layer) {
    replica.model->update_layer(layer, rate, replica.compute);
  }
}

// Copies the first device's parameters to the others, whose next forward pass waits for them. The
// first device's next update waits until they have been read.
void Trainer::spread_parameters() {
  Replica& first = *replicas_.front();
  const size_t bytes = first.model->parameter_count() * sizeof(float);
  for (size_t i = 1; i < replicas_.size(); ++i) {
    Replica& other = *replicas_[i];
    CUDA_CHECK(cudaMemcpyPeerAsync(other.model->parameters(), other.device,
                                   first.model->parameters(), first.device, bytes, first.compute));
    CUDA_CHECK(cudaEventRecord(first.parameters_ready, first.compute));
    CUDA_CHECK(cudaSetDevice(other.device));
    CUDA_CHECK(cudaStreamWaitEvent(other.compute, first.parameters_ready, 0));
    CUDA_CHECK(cudaSetDevice(first.device));
  }
}

// Launches the whole step as one graph; the first call for each input buffer captures it.
void Trainer::launch_graph(Replica& replica, Replica::Input& input) {
  if (input.graph == nullptr) {
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(replica.compute, cudaStreamCaptureModeThreadLocal));
    forward(replica, input);
    backward(replica, input);
    update(replica);
    CUDA_CHECK(cudaStreamEndCapture(replica.compute, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&input.graph, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
  }
  CUDA_CHECK(cudaGraphLaunch(input.graph, replica.compute));
}

void Trainer::allocate_workspace() {
  for (int layer = 0; layer < options_.layers; ++layer) {
    void* workspace = nullptr;
    CUDA_CHECK(cudaMalloc(&workspace, kWorkspaceBytes));
    CUDA_CHECK(cudaFree(workspace));
  }
}

// Waits for all that is queued on the compute stream.
float Trainer::read_loss(Replica& replica) {
  CUDA_CHECK(cudaMemcpyAsync(replica.loss_on_host, replica.model->loss(), sizeof(float),
                             cudaMemcpyDeviceToHost, replica.compute));
  CUDA_CHECK(cudaStreamSynchronize(replica.compute));
  return *replica.loss_on_host;
}

void Trainer::print_loss(int iteration) {
  const float loss = read_loss(*replicas_.front());
  std::printf("iteration %d loss %.4f\n", iteration + 1, static_cast<double>(loss));
}

// Copies the parameters to the host and writes them to a scratch file, as slowly as told.
void Trainer::write_checkpoint(int iteration) {
  const Mark mark(marks_, Phase::kCheckpoint);
  const auto end = Clock::now() + std::chrono::milliseconds(options_.checkpoint_ms);
  Replica& first = *replicas_.front();
  checkpoint_.resize(first.model->parameter_count());
  CUDA_CHECK(cudaStreamSynchronize(first.compute));
  CUDA_CHECK(cudaMemcpy(checkpoint_.data(), first.model->parameters(),
                        checkpoint_.size() * sizeof(float), cudaMemcpyDeviceToHost));
  std::FILE* file = std::tmpfile();
  const bool written =
      file != nullptr &&
      std::fwrite(checkpoint_.data(), sizeof(float), checkpoint_.size(), file) ==
          checkpoint_.size();
  if (file != nullptr) std::fclose(file);
  if (!written) std::fprintf(stderr, "checkpoint of iteration %d not written\n", iteration + 1);
  std::this_thread::sleep_until(end);
}
