// SPDX-License-Identifier: Apache-2.0
#include "cuda_check.hpp"
#include "trainer.hpp"

namespace {

constexpr int kTinyValues = 256;

cudaEvent_t create_event() {
  cudaEvent_t event = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

}  // namespace

Replica::Replica(const TrainerOptions& options, int device_index) : device(device_index) {
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
  model = std::make_unique<Model>(options);
  const size_t samples = static_cast<size_t>(options.batch);
  for (Input& buffer : input) {
    CUDA_CHECK(cudaMalloc(&buffer.inputs, samples * options.inputs * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&buffer.labels, samples * sizeof(int)));
    buffer.copied = create_event();
    buffer.used = create_event();
  }
  CUDA_CHECK(cudaMallocHost(&loss_on_host, sizeof(float)));
  *loss_on_host = 0.0F;
  CUDA_CHECK(cudaMalloc(&tiny_values, kTinyValues * sizeof(float)));
  CUDA_CHECK(cudaMemset(tiny_values, 0, kTinyValues * sizeof(float)));
  gradients_ready = create_event();
  parameters_ready = create_event();
  if (device > 0) {
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaMalloc(&peer_gradients, model->parameter_count() * sizeof(float)));
  }
}

Replica::~Replica() {
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaDeviceSynchronize());
  for (Input& buffer : input) {
    if (buffer.graph != nullptr) CUDA_CHECK(cudaGraphExecDestroy(buffer.graph));
    CUDA_CHECK(cudaFree(buffer.inputs));
    CUDA_CHECK(cudaFree(buffer.labels));
    CUDA_CHECK(cudaEventDestroy(buffer.copied));
    CUDA_CHECK(cudaEventDestroy(buffer.used));
  }
  CUDA_CHECK(cudaFreeHost(loss_on_host));
  CUDA_CHECK(cudaFree(tiny_values));
  CUDA_CHECK(cudaEventDestroy(gradients_ready));
  CUDA_CHECK(cudaEventDestroy(parameters_ready));
  model.reset();
  CUDA_CHECK(cudaStreamDestroy(compute));
  CUDA_CHECK(cudaStreamDestroy(copy));
  if (peer_gradients != nullptr) {
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaFree(peer_gradients));
  }
}
