/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear regression in plain C, with gpudiag linked in through its C API: gpudiag_start(), a range
 * around the loading of data, gpudiag_step() where an iteration ends.
 *
 * Build it alone, in this folder, against an installed gpudiag in $PREFIX:
 *
 *   nvcc -cudart shared -I$PREFIX/include -o c_trainer trainer.c kernels.cu
 *     -L$PREFIX/lib -lgpudiag -Xlinker -rpath=$PREFIX/lib          (one line)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "gpudiag/gpudiag.h"
#include "kernels.h"

enum { SAMPLES = 4096, FEATURES = 64, WEIGHTS = FEATURES + 1, LOG_EVERY = 10 };

struct trainer {
  float* host_inputs; /* pinned; SAMPLES rows of FEATURES, then SAMPLES targets */
  float* host_loss;   /* pinned */
  float* inputs;
  float* targets;
  float* predictions;
  float* weights;
  float* gradients;
  float* loss;
  cudaStream_t stream;
};

static void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
    exit(1);
  }
}

static float* device_floats(size_t count) {
  void* memory = NULL;
  check(cudaMalloc(&memory, count * sizeof(float)), "cudaMalloc");
  check(cudaMemset(memory, 0, count * sizeof(float)), "cudaMemset");
  return memory;
}

static float* pinned_floats(size_t count) {
  void* memory = NULL;
  check(cudaMallocHost(&memory, count * sizeof(float)), "cudaMallocHost");
  memset(memory, 0, count * sizeof(float));
  return memory;
}

static void set_up(struct trainer* t) {
  t->host_inputs = pinned_floats((size_t)SAMPLES * (FEATURES + 1));
  t->host_loss = pinned_floats(1);
  t->inputs = device_floats((size_t)SAMPLES * (FEATURES + 1));
  t->targets = t->inputs + (size_t)SAMPLES * FEATURES;
  t->predictions = device_floats(SAMPLES);
  t->weights = device_floats(WEIGHTS);
  t->gradients = device_floats(WEIGHTS);
  t->loss = device_floats(1);
  check(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void tear_down(struct trainer* t) {
  check(cudaStreamSynchronize(t->stream), "cudaStreamSynchronize");
  check(cudaStreamDestroy(t->stream), "cudaStreamDestroy");
  check(cudaFreeHost(t->host_inputs), "cudaFreeHost");
  check(cudaFreeHost(t->host_loss), "cudaFreeHost");
  check(cudaFree(t->inputs), "cudaFree");
  check(cudaFree(t->predictions), "cudaFree");
  check(cudaFree(t->weights), "cudaFree");
  check(cudaFree(t->gradients), "cudaFree");
  check(cudaFree(t->loss), "cudaFree");
}

/* Makes a batch whose targets are a known linear function of the features. */
static void load_batch(float* inputs, uint32_t number) {
  float* targets = inputs + (size_t)SAMPLES * FEATURES;
  uint32_t state = number * 2654435761U + 1;
  for (int sample = 0; sample < SAMPLES; ++sample) {
    float target = 0.5F;
    for (int j = 0; j < FEATURES; ++j) {
      state = state * 1664525U + 1013904223U;
      const float feature = (float)(state >> 8) / 16777216.0F - 0.5F;
      inputs[(size_t)sample * FEATURES + (size_t)j] = feature;
      target += feature * (float)(j % 5 - 2);
    }
    targets[sample] = target;
  }
}

static void train_step(struct trainer* t, uint32_t iteration) {
  /* One buffer for batches: it may be filled anew when the last one is on the device. */
  check(cudaStreamSynchronize(t->stream), "cudaStreamSynchronize");
  gpudiag_range_push("next_batch", GPUDIAG_CAUSE_DATA_LOADING);
  load_batch(t->host_inputs, iteration);
  gpudiag_range_pop();

  const size_t bytes = (size_t)SAMPLES * (FEATURES + 1) * sizeof(float);
  check(cudaMemcpyAsync(t->inputs, t->host_inputs, bytes, cudaMemcpyHostToDevice, t->stream),
        "cudaMemcpyAsync");
  check(queue_predict(t->inputs, t->weights, t->predictions, SAMPLES, FEATURES, t->stream),
        "predict");
  check(queue_gradients(t->inputs, t->targets, t->predictions, t->gradients, t->loss, SAMPLES,
                        FEATURES, t->stream),
        "gradients");
  check(queue_update(t->weights, t->gradients, WEIGHTS, 0.5F, t->stream), "update");

  if ((iteration + 1) % LOG_EVERY == 0) {
    check(cudaMemcpyAsync(t->host_loss, t->loss, sizeof(float), cudaMemcpyDeviceToHost, t->stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(t->stream), "cudaStreamSynchronize");
    printf("iteration %u loss %.4f\n", iteration + 1, (double)*t->host_loss);
  }
}

int main(int argc, char** argv) {
  long iterations = 200;
  if (argc == 3 && strcmp(argv[1], "--iterations") == 0) iterations = strtol(argv[2], NULL, 10);
  if (iterations < 1 || iterations > 1000000000 || (argc != 1 && argc != 3)) {
    fprintf(stderr, "Usage: %s [--iterations N]\n", argv[0]);
    return 2;
  }

  /* The program trains whatever this returns; it says on stderr where there will be no ledger. */
  gpudiag_start(NULL);
  struct trainer trainer;
  set_up(&trainer);
  for (long i = 0; i < iterations; ++i) {
    train_step(&trainer, (uint32_t)i);
    gpudiag_step();
  }
  tear_down(&trainer);
  printf("trained %ld iterations\n", iterations);
  gpudiag_stop();
  return 0;
}
