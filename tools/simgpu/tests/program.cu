// SPDX-License-Identifier: Apache-2.0
//
// An ordinary CUDA program, built by nvcc, that the scenario tests run in processes of their own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nvtx3/nvToolsExt.h>

__global__ void step(float* data, unsigned long long duration_ns) {
  data[threadIdx.x] += static_cast<float>(duration_ns);
}
__global__ void stuck() {}
__device__ int device_counter;
__constant__ float constants[4];
__managed__ int managed_counter;

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  std::fflush(stdout);
  std::_Exit(3);
}

// Copies, launches, waits: all that most programs do.
int train() {
  float* data = nullptr;
  check(cudaMalloc(&data, 4096), "cudaMalloc");
  check(cudaMemset(data, 0, 4096), "cudaMemset");
  for (int i = 0; i < 3; ++i) step<<<2, 64>>>(data, 200000);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaFree(data), "cudaFree");
  std::puts("trained");
  return 0;
}

int symbols() {
  int counter = 17;
  const float values[4] = {1, 2, 3, 4};
  check(cudaMemcpyToSymbol(device_counter, &counter, sizeof counter), "to symbol");
  check(cudaMemcpyToSymbol(constants, values, sizeof values), "to constant");
  counter = 0;
  check(cudaMemcpyFromSymbol(&counter, device_counter, sizeof counter), "from symbol");
  managed_counter = 5;
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::printf("counter %d managed %d\n", counter, managed_counter);
  return 0;
}

int hang() {
  stuck<<<1, 1>>>();
  std::printf("query %s\n", cudaGetErrorName(cudaStreamQuery(nullptr)));
  return 5;  // leaves with the kernel still running
}

int sticky() {
  stuck<<<1, 1>>>();
  std::printf("sync %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  void* memory = nullptr;
  std::printf("then %s\n", cudaGetErrorName(cudaMalloc(&memory, 16)));
  std::printf("last %s %s\n", cudaGetErrorName(cudaGetLastError()),
              cudaGetErrorName(cudaGetLastError()));
  return 0;
}

int fork_child() {
  check(cudaFree(nullptr), "cudaFree");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    void* memory = nullptr;
    std::_Exit(cudaMalloc(&memory, 16) == cudaErrorInitializationError ? 7 : 8);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", WEXITSTATUS(status));
  return train();
}

int count() {
  int devices = 99;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  std::printf("%s %d\n", cudaGetErrorName(error), devices);
  return 0;
}

int mallocs() {
  for (int i = 0; i < 4; ++i) {
    void* memory = nullptr;
    std::printf("%s\n", cudaGetErrorName(cudaMalloc(&memory, 1024)));
  }
  return 0;
}

int events() {
  cudaEvent_t begin, end;
  float ms = 0;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  check(cudaEventRecord(begin), "cudaEventRecord");
  step<<<1, 1>>>(nullptr, 40000000);
  check(cudaEventRecord(end), "cudaEventRecord");
  check(cudaEventSynchronize(end), "cudaEventSynchronize");
  check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
  std::printf("%s\n", ms > 60 ? "stretched" : "true");
  return 0;
}

// What a wait or an operation refers to after it has ended, and a range around it.
int ended() {
  nvtxRangePushA("outer");
  nvtxRangePushA("inner");
  cudaEvent_t event;
  cudaStream_t other;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
  step<<<1, 1>>>(nullptr, 40000000);
  check(cudaEventRecord(event), "cudaEventRecord");
  check(cudaEventSynchronize(event), "cudaEventSynchronize");
  nvtxRangePop();
  check(cudaEventSynchronize(event), "cudaEventSynchronize");
  check(cudaStreamWaitEvent(other, event, 0), "cudaStreamWaitEvent");
  nvtxRangePop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "train";
  if (std::strcmp(what, "symbols") == 0) return symbols();
  if (std::strcmp(what, "hang") == 0) return hang();
  if (std::strcmp(what, "sticky") == 0) return sticky();
  if (std::strcmp(what, "fork") == 0) return fork_child();
  if (std::strcmp(what, "count") == 0) return count();
  if (std::strcmp(what, "mallocs") == 0) return mallocs();
  if (std::strcmp(what, "events") == 0) return events();
  if (std::strcmp(what, "ended") == 0) return ended();
  if (std::strcmp(what, "quick_exit") == 0) {
    train();
    std::fflush(stdout);
    std::quick_exit(4);
  }
  return train();
}
