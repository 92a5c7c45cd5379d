// SPDX-License-Identifier: Apache-2.0
//
// A small training job that ends in every way a process can end. Knows nothing of gpudiag. What it
// prints depends on its arguments alone, so that a run with gpudiag around it must print the same.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

__global__ void work(float* values, int rounds) {
  float value = values[threadIdx.x];
  for (int i = 0; i < rounds; ++i) value = value * 1.5f + 0.5f;
  values[threadIdx.x] = value;
}

float* device_values() {
  static float* const values = [] {
    float* made = nullptr;
    if (cudaMalloc(&made, 1 << 20) != cudaSuccess) made = nullptr;
    return made;
  }();
  return values;
}

// Counts the calls that failed: with faults asked for, some do, in every run the same.
std::atomic<int> failures{0};
void check(cudaError_t error) {
  if (error != cudaSuccess) ++failures;
}

void iteration(int index) {
  nvtxRangePushA(("iter " + std::to_string(index)).c_str());
  for (int i = 0; i < 8; ++i) {
    work<<<4, 128>>>(device_values(), 100);
    check(cudaGetLastError());
  }
  float host = 0;
  check(cudaMemcpy(&host, device_values(), sizeof host, cudaMemcpyDeviceToHost));
  check(cudaDeviceSynchronize());
  nvtxRangePop();
}

void train(int iterations) {
  for (int i = 0; i < iterations; ++i) iteration(i);
  std::printf("trained %d iterations\n", iterations);
  std::fflush(stdout);
}

void train_for(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; std::chrono::steady_clock::now() < until; ++i) {
    iteration(i);
    usleep(2000);
  }
  std::printf("trained on\n");
}

// Launches in its destructor, after main() and after whatever was registered later than it.
struct Late {
  bool armed = false;
  ~Late() {
    if (!armed) return;
    work<<<1, 32>>>(device_values(), 10);
    std::printf("late launch: %s\n", cudaDeviceSynchronize() == cudaSuccess ? "done" : "refused");
  }
} late;

std::atomic<int> signals{0};

void with_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { ++signals; };
  sigaction(SIGUSR2, &action, nullptr);
  for (int i = 0; i < 100; ++i) {
    iteration(i);
    kill(getpid(), SIGUSR2);
  }
  std::printf("signals %d\n", signals.load());
}

void with_fork() {
  train(20);
  const pid_t child = fork();
  if (child == 0) {
    nvtxRangePushA("in the child");
    nvtxRangePop();
    std::printf("child\n");
    std::exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child exited %d\n", WEXITSTATUS(status));
  train(20);
}

void with_threads() {
  for (int t = 0; t < 8; ++t)
    std::thread{[] {
      for (;;) iteration(0);
    }}.detach();
  usleep(300'000);
  std::printf("leaving\n");
}

// A training loop beside `count` threads that use the GPU too, each on a stream of its own; they pause
// between two goes, or leave nobody else a processor.
void with_many_threads(int count, int pause_us) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  device_values();
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&] {
      cudaStream_t stream{};
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      while (!stop) {
        nvtxRangePushA("beside");
        work<<<1, 32, 0, stream>>>(device_values(), 10);
        check(cudaGetLastError());
        check(cudaStreamSynchronize(stream));
        nvtxRangePop();
        if (pause_us > 0) usleep(static_cast<useconds_t>(pause_us));
      }
    });
  for (int i = 0; i < 40; ++i) {
    iteration(i);
    usleep(20'000);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("trained beside %d threads\n", count);
}

// The first to speak to NVTX is a thread with the smallest stack there may be.
void with_small_stack() {
  device_values();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16'384);
  const auto body = [](void*) -> void* {
    nvtxRangePushA("small");
    work<<<1, 1>>>(device_values(), 1);
    nvtxRangePop();
    return nullptr;
  };
  pthread_t thread;
  check(pthread_create(&thread, &attributes, body, nullptr) == 0 ? cudaSuccess : cudaErrorUnknown);
  pthread_join(thread, nullptr);
  check(cudaDeviceSynchronize());
  std::printf("small stack done\n");
}

int run(const std::string& mode, const char* argument) {
  if (mode == "train") return train(std::atoi(argument)), 0;
  if (mode == "for") return train_for(std::atof(argument)), 0;
  if (mode == "exit") train(20), std::exit(std::atoi(argument));
  if (mode == "quick_exit") train(20), std::quick_exit(std::atoi(argument));
  if (mode == "_exit") train(20), _exit(std::atoi(argument));
  if (mode == "abort") train(20), std::abort();
  if (mode == "raise") train(20), raise(std::atoi(argument));
  if (mode == "signals") return with_signals(), 0;
  if (mode == "fork") return with_fork(), 0;
  if (mode == "threads") return with_threads(), 0;
  if (mode == "many_threads") return with_many_threads(std::atoi(argument), 20'000), 0;
  if (mode == "greedy_threads") return with_many_threads(std::atoi(argument), 0), 0;
  if (mode == "small_stack") return with_small_stack(), 0;
  if (mode == "static") return late.armed = true, train(20), 0;
  if (mode == "unfinished") return work<<<1, 1>>>(device_values(), 1), usleep(300'000), std::printf("left\n"), 0;
  if (mode == "shell") {
    train(20);
    std::fflush(stdout);
    const int status = std::system(argument);
    std::printf("shell exited %d\n", WEXITSTATUS(status));
    return 0;
  }
  std::fprintf(stderr, "no such mode: %s\n", mode.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc > 1 ? argv[1] : "train", argc > 2 ? argv[2] : "20");
  if (failures > 0) std::printf("failed calls: %d\n", failures.load());
  return status;
}
