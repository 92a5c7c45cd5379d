// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training in C++: one process a GPU, gradients summed by NCCL. The program starts its
// ranks itself, with the variables that torchrun sets.
//
//   nvcc -std=c++20 -cudart shared main.cu nccl_api.cu -o nccl_trainer -ldl
//   gpudiag run -- ./nccl_trainer --ranks 2 --slow-rank 1 --trouble loader --ms 20
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <sys/mman.h>
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

#include "nccl_api.hpp"

namespace {

struct Options {
  int ranks = 2;
  int iterations = 60;
  int layers = 8;
  int slow_rank = -1;
  std::string trouble = "none";
  int ms = 20;          // of the trouble, an iteration
  int at = 20;          // iteration of a trouble that happens once
};

// What the ranks share before NCCL: the id that rank 0 makes.
struct Meeting {
  std::atomic<int> ready;
  NcclId id;
};

constexpr size_t kValues = size_t{1} << 18;  // of a layer's gradients
constexpr int kThreads = 256;

[[noreturn]] void usage() {
  std::fputs(
      "nccl_trainer [--ranks N] [--iterations N] [--layers N] [--slow-rank R --trouble NAME] [--ms N] [--at N]\n"
      "  troubles, on rank R alone:\n"
      "    loader   the next batch comes N ms late in every iteration\n"
      "    host     code that keeps the processor busy for N ms\n"
      "    sync     waits for the device after every layer, and N ms for nothing\n"
      "    compute  a kernel more, of N ms\n"
      "    stall    at iteration --at the host sleeps for 1000 N ms\n"
      "    die      at iteration --at the process kills itself\n",
      stderr);
  std::exit(2);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    const char* value = arguments[i + 1];
    if (name == "--ranks") options.ranks = std::atoi(value);
    else if (name == "--iterations") options.iterations = std::atoi(value);
    else if (name == "--layers") options.layers = std::atoi(value);
    else if (name == "--slow-rank") options.slow_rank = std::atoi(value);
    else if (name == "--trouble") options.trouble = value;
    else if (name == "--ms") options.ms = std::atoi(value);
    else if (name == "--at") options.at = std::atoi(value);
    else usage();
  }
  if (count % 2 == 0 || options.ranks < 1 || options.layers < 1) usage();
  return options;
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void train_layer(float* gradients, size_t count) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < count) gradients[i] = gradients[i] * 0.5F + 1.0F;
}

// As long as the clock says.
__global__ void occupy(unsigned long long cycles) {
  const unsigned long long start = static_cast<unsigned long long>(clock64());
  while (static_cast<unsigned long long>(clock64()) - start < cycles) {
  }
}

class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void be_busy(int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
  }
}

class Rank {
 public:
  Rank(const Options& options, int rank, Meeting& meeting) : options_(options), rank_(rank) {
    int devices = 1;
    check(cudaGetDeviceCount(&devices), "devices");
    check(cudaSetDevice(rank % devices), "device");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    check(cudaMalloc(&gradients_, static_cast<size_t>(options.layers) * kValues * sizeof(float)), "memory");
    if (rank == 0) {
      nccl_check(nccl_.get_unique_id(&meeting.id), "ncclGetUniqueId");
      meeting.ready.store(1);
    }
    while (meeting.ready.load() == 0) sleep_ms(1);
    nccl_check(nccl_.comm_init_rank(&communicator_, options.ranks, meeting.id, rank), "ncclCommInitRank");
  }

  void train() {
    for (int i = 0; i < options_.iterations; ++i) step(i);
    check(cudaStreamSynchronize(stream_), "end");
    nccl_check(nccl_.comm_destroy(communicator_), "ncclCommDestroy");
    std::printf("rank %d trained %d iterations\n", rank_, options_.iterations);
  }

 private:
  bool has(const char* trouble) const { return rank_ == options_.slow_rank && options_.trouble == trouble; }

  void step(int i) {
    const Range range("iteration");
    {
      const Range next("next_batch");
      if (has("loader")) sleep_ms(options_.ms);
    }
    if (has("host")) be_busy(options_.ms);
    if (has("stall") && i == options_.at) {
      const Range checkpoint("save_checkpoint");
      sleep_ms(1000 * options_.ms);
    }
    if (has("die") && i == options_.at) kill(getpid(), SIGKILL);
    for (int layer = 0; layer < options_.layers; ++layer) {
      float* part = gradients_ + static_cast<size_t>(layer) * kValues;
      train_layer<<<kValues / kThreads, kThreads, 0, stream_>>>(part, kValues);
      if (has("sync")) check(cudaStreamSynchronize(stream_), "sync");
    }
    if (has("sync")) {
      occupy<<<1, 1, 0, stream_>>>(static_cast<unsigned long long>(options_.ms) * 1000000ULL);
      check(cudaStreamSynchronize(stream_), "sync");
    }
    if (has("compute")) occupy<<<1, 1, 0, stream_>>>(static_cast<unsigned long long>(options_.ms) * 1000000ULL);
    for (int bucket = 0; bucket < 2; ++bucket) {
      const size_t count = static_cast<size_t>(options_.layers) * kValues / 2;
      float* part = gradients_ + static_cast<size_t>(bucket) * count;
      nccl_check(nccl_.all_reduce(part, part, count, kNcclFloat32, kNcclSum, communicator_, stream_), "ncclAllReduce");
    }
    train_layer<<<kValues / kThreads, kThreads, 0, stream_>>>(gradients_, kValues);
    check(cudaStreamSynchronize(stream_), "step");
  }

  const Options options_;
  const int rank_;
  const Nccl nccl_;
  NcclCommunicator communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
  float* gradients_ = nullptr;
};

void name_rank(const Options& options, int rank, int job) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(job).c_str(), 1);
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  void* shared = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* meeting = new (shared) Meeting{};
  // Before CUDA is used: a process that has used it cannot be forked.
  std::vector<pid_t> ranks;
  const int job = getpid();
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      name_rank(options, rank, job);
      Rank(options, rank, *meeting).train();
      return 0;
    }
    ranks.push_back(child);
  }
  int worst = 0;
  // As launchers do: where one fails, the others are ended, for they would wait for it for ever.
  for (size_t left = ranks.size(); left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    for (pid_t& rank : ranks)
      if (rank == ended) rank = 0;
    if (status == 0 || worst != 0) continue;
    sleep_ms(4000);
    worst = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    for (const pid_t rank : ranks)
      if (rank > 0) kill(rank, SIGTERM);
  }
  return worst;
}
