// SPDX-License-Identifier: Apache-2.0
//
// A multilayer perceptron with softmax cross-entropy, trained by plain SGD: one replica on the
// device that was current when it was made. All calls queue kernels on a stream and return.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "options.hpp"

class Model {
 public:
  explicit Model(const TrainerOptions& options);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Number of layers; forward and backward go through them in order and in reverse.
  size_t layers() const { return layers_.size(); }

  // Computes layer `index` from the layer before, the first from `inputs` (batch × inputs).
  void forward_layer(size_t index, const float* inputs, cudaStream_t stream);
  // Mean loss over the batch, and its gradient by the last layer's outputs.
  void compute_loss(const int* labels, cudaStream_t stream);
  // Gradients of layer `index`, and by the outputs of the layer before it.
  void backward_layer(size_t index, const float* inputs, cudaStream_t stream);
  // One step of SGD on layer `index`.
  void update_layer(size_t index, float learning_rate, cudaStream_t stream);

  // All parameters, and all gradients in the same order, as one array each.
  float* parameters() { return parameters_; }
  float* gradients() { return gradients_; }
  size_t parameter_count() const { return parameter_count_; }
  // The mean loss, one float on the device.
  const float* loss() const { return loss_; }

 private:
  struct Layer {
    int inputs, outputs;
    size_t weights;  // offset into the parameters; the biases follow the weights
    float* activations;
    float* activation_gradients;
  };

  void add_layer(int inputs, int outputs);

  int batch_;
  std::vector<Layer> layers_;
  size_t parameter_count_ = 0;
  float* parameters_ = nullptr;
  float* gradients_ = nullptr;
  float* row_losses_ = nullptr;
  float* loss_ = nullptr;
};

// sum[i] += addend[i], as the replicas' gradients are added up.
void add_gradients(float* sum, const float* addend, size_t count, cudaStream_t stream);
// values[i] *= factor: one of the small elementwise kernels that unfused code consists of.
void scale_values(float* values, int count, float factor, cudaStream_t stream);
// Occupies the stream for `microseconds`, as a kernel would that is not worth writing out here.
void occupy(int microseconds, cudaStream_t stream);
