// SPDX-License-Identifier: Apache-2.0
//
// The training loop: batch to the device on a copy stream, forward, backward, optimizer on a compute
// stream, with the troubles that the options bring in.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "loader.hpp"
#include "marks.hpp"
#include "model.hpp"
#include "options.hpp"

// One device: a replica of the model, its streams and two buffers for batches, so that the next
// batch is copied while the model works on this one.
struct Replica {
  struct Input {
    float* inputs = nullptr;
    int* labels = nullptr;
    cudaEvent_t copied = nullptr;  // the batch is on the device
    cudaEvent_t used = nullptr;    // the model is done with it
    cudaGraphExec_t graph = nullptr;
  };

  Replica(const TrainerOptions& options, int device);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  int device;
  cudaStream_t compute = nullptr;
  cudaStream_t copy = nullptr;
  std::unique_ptr<Model> model;
  Input input[2];
  Batch* in_flight = nullptr;          // the batch that was copied last
  float* peer_gradients = nullptr;     // on the first device: gradients that came from this one
  float* loss_on_host = nullptr;       // pinned
  float* tiny_values = nullptr;        // what the small kernels work on
  cudaEvent_t gradients_ready = nullptr;
  cudaEvent_t parameters_ready = nullptr;
};

class Trainer {
 public:
  Trainer(const TrainerOptions& options, Marks& marks);

  // Trains for all iterations and prints losses to stdout.
  void train();

 private:
  void step(int iteration);
  Replica::Input& load_batch(Replica& replica, int iteration);
  void forward(Replica& replica, const Replica::Input& input);
  void between_passes(Replica& replica, int iteration);
  void backward(Replica& replica, const Replica::Input& input);
  void exchange_gradients();
  void update(Replica& replica);
  void spread_parameters();
  void launch_graph(Replica& replica, Replica::Input& input);
  void allocate_workspace();
  float read_loss(Replica& replica);
  void print_loss(int iteration);
  void write_checkpoint(int iteration);

  TrainerOptions options_;
  Marks& marks_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  Loader loader_;
  std::vector<float> checkpoint_;
};
