// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cuda_check.hpp"
#include "model.hpp"

namespace {

constexpr int kTile = 16;       // matrix products work on tiles of 16 × 16
constexpr int kThreads = 256;   // elementwise kernels and reductions

// outputs = inputs · weights + biases, and max(0, ·) if `relu`. Row-major: inputs rows × inner,
// weights inner × columns.
__global__ void linear_forward(const float* inputs, const float* weights, const float* biases,
                               float* outputs, int rows, int inner, int columns, bool relu) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = column < columns ? biases[column] : 0.0F;
  for (int start = 0; start < inner; start += kTile) {
    const int left_column = start + threadIdx.x;
    const int right_row = start + threadIdx.y;
    left[threadIdx.y][threadIdx.x] =
        row < rows && left_column < inner ? inputs[row * inner + left_column] : 0.0F;
    right[threadIdx.y][threadIdx.x] =
        right_row < inner && column < columns ? weights[right_row * columns + column] : 0.0F;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) {
    outputs[row * columns + column] = relu ? fmaxf(sum, 0.0F) : sum;
  }
}

// weight_gradients = inputsᵀ · output_gradients; inputs batch × rows, output_gradients batch ×
// columns.
__global__ void linear_backward_weights(const float* inputs, const float* output_gradients,
                                        float* weight_gradients, int batch, int rows,
                                        int columns) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  const int left_column = blockIdx.y * kTile + threadIdx.x;
  float sum = 0.0F;
  for (int start = 0; start < batch; start += kTile) {
    const int sample = start + threadIdx.y;
    left[threadIdx.y][threadIdx.x] =
        sample < batch && left_column < rows ? inputs[sample * rows + left_column] : 0.0F;
    right[threadIdx.y][threadIdx.x] =
        sample < batch && column < columns ? output_gradients[sample * columns + column] : 0.0F;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[k][threadIdx.y] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) weight_gradients[row * columns + column] = sum;
}

// Sums `partial` up into its first element; all threads of the block call it. The order is fixed, so
// that equal runs give equal results.
__device__ void reduce_block(float (&partial)[kThreads]) {
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
}

// One block a column: bias_gradients[c] = sum over the batch of output_gradients[·][c].
__global__ void linear_backward_biases(const float* output_gradients, float* bias_gradients,
                                       int batch, int columns) {
  __shared__ float partial[kThreads];
  const int column = blockIdx.x;
  float sum = 0.0F;
  for (int sample = threadIdx.x; sample < batch; sample += kThreads) {
    sum += output_gradients[sample * columns + column];
  }
  partial[threadIdx.x] = sum;
  reduce_block(partial);
  if (threadIdx.x == 0) bias_gradients[column] = partial[0];
}

// input_gradients = (output_gradients · weightsᵀ) where the layer before was not cut off by its
// max(0, ·), else 0; weights columns × inner.
__global__ void linear_backward_inputs(const float* output_gradients, const float* weights,
                                       const float* activations, float* input_gradients, int rows,
                                       int inner, int columns) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  const int right_row = blockIdx.x * kTile + threadIdx.y;
  float sum = 0.0F;
  for (int start = 0; start < inner; start += kTile) {
    const int k_column = start + threadIdx.x;
    left[threadIdx.y][threadIdx.x] =
        row < rows && k_column < inner ? output_gradients[row * inner + k_column] : 0.0F;
    right[threadIdx.y][threadIdx.x] =
        right_row < columns && k_column < inner ? weights[right_row * inner + k_column] : 0.0F;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[threadIdx.x][k];
    __syncthreads();
  }
  if (row < rows && column < columns) {
    const int i = row * columns + column;
    input_gradients[i] = activations[i] > 0.0F ? sum : 0.0F;
  }
}

// One thread a sample: its loss, and the loss's gradient by the sample's scores.
__global__ void softmax_cross_entropy(const float* scores, const int* labels, float* row_losses,
                                      float* score_gradients, int batch, int classes) {
  const int sample = blockIdx.x * blockDim.x + threadIdx.x;
  if (sample >= batch) return;
  const float* row = scores + sample * classes;
  float largest = row[0];
  for (int c = 1; c < classes; ++c) largest = fmaxf(largest, row[c]);
  float sum = 0.0F;
  for (int c = 0; c < classes; ++c) sum += expf(row[c] - largest);
  const int label = labels[sample];
  row_losses[sample] = logf(sum) + largest - row[label];
  for (int c = 0; c < classes; ++c) {
    const float probability = expf(row[c] - largest) / sum;
    score_gradients[sample * classes + c] =
        (probability - (c == label ? 1.0F : 0.0F)) / static_cast<float>(batch);
  }
}

// One block.
__global__ void mean_loss(const float* row_losses, float* loss, int batch) {
  __shared__ float partial[kThreads];
  float sum = 0.0F;
  for (int i = threadIdx.x; i < batch; i += kThreads) sum += row_losses[i];
  partial[threadIdx.x] = sum;
  reduce_block(partial);
  if (threadIdx.x == 0) *loss = partial[0] / static_cast<float>(batch);
}

__global__ void sgd_update(float* parameters, const float* gradients, size_t count, float rate) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) parameters[i] -= rate * gradients[i];
}

__global__ void accumulate_gradients(float* sum, const float* addend, size_t count) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) sum[i] += addend[i];
}

__global__ void scale_elements(float* values, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

// Weights from a hash of their place, uniform in ±sqrt(6 / inputs): equal on every device and run.
__global__ void initialise_weights(float* weights, size_t count, float limit, unsigned seed) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned hash = static_cast<unsigned>(i) * 2654435761U ^ seed * 2246822519U;
  hash = (hash ^ hash >> 15) * 2246822519U;
  hash = (hash ^ hash >> 13) * 3266489917U;
  hash ^= hash >> 16;
  weights[i] = limit * (static_cast<float>(hash >> 8) / 8388608.0F - 1.0F);
}

__global__ void occupy_device(unsigned long long nanoseconds) {
  unsigned long long start;
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

unsigned blocks_for(size_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

dim3 tiles_for(int rows, int columns) {
  return dim3(static_cast<unsigned>((columns + kTile - 1) / kTile),
              static_cast<unsigned>((rows + kTile - 1) / kTile));
}

float* allocate_floats(size_t count) {
  float* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, count * sizeof(float)));
  return memory;
}

float* allocate_zeros(size_t count) {
  float* memory = allocate_floats(count);
  CUDA_CHECK(cudaMemset(memory, 0, count * sizeof(float)));
  return memory;
}

}  // namespace

Model::Model(const TrainerOptions& options) : batch_(options.batch) {
  int width = options.inputs;
  for (int i = 0; i < options.layers; ++i) {
    const int outputs = i + 1 == options.layers ? options.classes : options.hidden;
    add_layer(width, outputs);
    width = outputs;
  }
  parameters_ = allocate_zeros(parameter_count_);
  gradients_ = allocate_zeros(parameter_count_);
  row_losses_ = allocate_floats(static_cast<size_t>(batch_));
  loss_ = allocate_zeros(1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const size_t count = static_cast<size_t>(layer.inputs) * layer.outputs;
    const float limit = std::sqrt(6.0F / static_cast<float>(layer.inputs));
    initialise_weights<<<blocks_for(count), kThreads>>>(parameters_ + layer.weights, count, limit,
                                                        static_cast<unsigned>(i + 1));
  }
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

Model::~Model() {
  for (const Layer& layer : layers_) {
    CUDA_CHECK(cudaFree(layer.activations));
    CUDA_CHECK(cudaFree(layer.activation_gradients));
  }
  for (float* memory : {parameters_, gradients_, row_losses_, loss_}) CUDA_CHECK(cudaFree(memory));
}

void Model::add_layer(int inputs, int outputs) {
  const size_t outputs_of_batch = static_cast<size_t>(batch_) * outputs;
  layers_.push_back({inputs, outputs, parameter_count_, allocate_floats(outputs_of_batch),
                     allocate_floats(outputs_of_batch)});
  parameter_count_ += (static_cast<size_t>(inputs) + 1) * outputs;
}

void Model::forward_layer(size_t index, const float* inputs, cudaStream_t stream) {
  const Layer& layer = layers_[index];
  const float* weights = parameters_ + layer.weights;
  const float* biases = weights + static_cast<size_t>(layer.inputs) * layer.outputs;
  const float* source = index == 0 ? inputs : layers_[index - 1].activations;
  linear_forward<<<tiles_for(batch_, layer.outputs), dim3(kTile, kTile), 0, stream>>>(
      source, weights, biases, layer.activations, batch_, layer.inputs, layer.outputs,
      index + 1 < layers_.size());
  CUDA_CHECK(cudaGetLastError());
}

void Model::compute_loss(const int* labels, cudaStream_t stream) {
  const Layer& last = layers_.back();
  softmax_cross_entropy<<<blocks_for(static_cast<size_t>(batch_)), kThreads, 0, stream>>>(
      last.activations, labels, row_losses_, last.activation_gradients, batch_, last.outputs);
  mean_loss<<<1, kThreads, 0, stream>>>(row_losses_, loss_, batch_);
  CUDA_CHECK(cudaGetLastError());
}

void Model::backward_layer(size_t index, const float* inputs, cudaStream_t stream) {
  const Layer& layer = layers_[index];
  const float* source = index == 0 ? inputs : layers_[index - 1].activations;
  float* weight_gradients = gradients_ + layer.weights;
  float* bias_gradients = weight_gradients + static_cast<size_t>(layer.inputs) * layer.outputs;
  const dim3 tile(kTile, kTile);
  linear_backward_weights<<<tiles_for(layer.inputs, layer.outputs), tile, 0, stream>>>(
      source, layer.activation_gradients, weight_gradients, batch_, layer.inputs, layer.outputs);
  linear_backward_biases<<<layer.outputs, kThreads, 0, stream>>>(
      layer.activation_gradients, bias_gradients, batch_, layer.outputs);
  if (index > 0) {
    const Layer& before = layers_[index - 1];
    linear_backward_inputs<<<tiles_for(batch_, layer.inputs), tile, 0, stream>>>(
        layer.activation_gradients, parameters_ + layer.weights, before.activations,
        before.activation_gradients, batch_, layer.outputs, layer.inputs);
  }
  CUDA_CHECK(cudaGetLastError());
}

void Model::update_layer(size_t index, float learning_rate, cudaStream_t stream) {
  const Layer& layer = layers_[index];
  const size_t count = (static_cast<size_t>(layer.inputs) + 1) * layer.outputs;
  sgd_update<<<blocks_for(count), kThreads, 0, stream>>>(
      parameters_ + layer.weights, gradients_ + layer.weights, count, learning_rate);
  CUDA_CHECK(cudaGetLastError());
}

void add_gradients(float* sum, const float* addend, size_t count, cudaStream_t stream) {
  accumulate_gradients<<<blocks_for(count), kThreads, 0, stream>>>(sum, addend, count);
  CUDA_CHECK(cudaGetLastError());
}

void scale_values(float* values, int count, float factor, cudaStream_t stream) {
  scale_elements<<<blocks_for(static_cast<size_t>(count)), kThreads, 0, stream>>>(values, count,
                                                                                 factor);
  CUDA_CHECK(cudaGetLastError());
}

void occupy(int microseconds, cudaStream_t stream) {
  occupy_device<<<1, 1, 0, stream>>>(static_cast<unsigned long long>(microseconds) * 1000);
  CUDA_CHECK(cudaGetLastError());
}
