// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

namespace {

constexpr int kThreads = 256;

int blocks_for(int count) { return (count + kThreads - 1) / kThreads; }

__global__ void predict(const float* inputs, const float* weights, float* predictions, int samples,
                        int features) {
  const int sample = blockIdx.x * blockDim.x + threadIdx.x;
  if (sample >= samples) return;
  float sum = weights[features];
  for (int j = 0; j < features; ++j) sum += weights[j] * inputs[sample * features + j];
  predictions[sample] = sum;
}

// Thread j sums up the gradient of weight j, the last thread that of the bias and the loss.
__global__ void mean_squared_error_gradients(const float* inputs, const float* targets,
                                             const float* predictions, float* gradients,
                                             float* loss, int samples, int features) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j > features) return;
  float gradient = 0.0F;
  float squares = 0.0F;
  for (int sample = 0; sample < samples; ++sample) {
    const float error = predictions[sample] - targets[sample];
    gradient += error * (j < features ? inputs[sample * features + j] : 1.0F);
    squares += error * error;
  }
  const float scale = 1.0F / static_cast<float>(samples);
  gradients[j] = 2.0F * scale * gradient;
  if (j == features) *loss = scale * squares;
}

__global__ void update(float* weights, const float* gradients, int count, float rate) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) weights[i] -= rate * gradients[i];
}

}  // namespace

cudaError_t queue_predict(const float* inputs, const float* weights, float* predictions, int samples,
                          int features, cudaStream_t stream) {
  predict<<<blocks_for(samples), kThreads, 0, stream>>>(inputs, weights, predictions, samples,
                                                        features);
  return cudaGetLastError();
}

cudaError_t queue_gradients(const float* inputs, const float* targets, const float* predictions,
                            float* gradients, float* loss, int samples, int features,
                            cudaStream_t stream) {
  mean_squared_error_gradients<<<blocks_for(features + 1), kThreads, 0, stream>>>(
      inputs, targets, predictions, gradients, loss, samples, features);
  return cudaGetLastError();
}

cudaError_t queue_update(float* weights, const float* gradients, int count, float rate,
                         cudaStream_t stream) {
  update<<<blocks_for(count), kThreads, 0, stream>>>(weights, gradients, count, rate);
  return cudaGetLastError();
}
