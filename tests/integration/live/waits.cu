// SPDX-License-Identifier: Apache-2.0
//
// A training loop whose host is held up for a while in each iteration, each time by the same thing.
// Knows nothing of gpudiag.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

__global__ void work(float* values) { values[threadIdx.x] = values[threadIdx.x] * 1.5f + 0.5f; }

constexpr auto kHeldUp = milliseconds(25);

void burn(Clock::duration length) {
  const auto until = Clock::now() + length;
  volatile double sum = 0;
  while (Clock::now() < until)
    for (int i = 0; i < 1000; ++i) sum = sum + i;
}

/// The processor time of `length`, however long that takes.
void burn_processor_time(milliseconds length) {
  timespec before{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  do {
    burn(milliseconds(1));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - before.tv_sec) * 1000 + (now.tv_nsec - before.tv_nsec) / 1'000'000 < length.count());
}

/// Does `go` on a thread of its own each time it is asked.
class Other {
 public:
  explicit Other(std::function<void()> go) : thread_{[this, go = std::move(go)] {
    for (;;) {
      std::unique_lock lock{mutex_};
      asked_.wait(lock, [this] { return wanted_; });
      wanted_ = false;
      lock.unlock();
      go();
    }
  }} {
    thread_.detach();
  }
  void ask() {
    const std::lock_guard lock{mutex_};
    wanted_ = true;
    asked_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable asked_;
  bool wanted_ = false;
  std::thread thread_;
};

std::function<void()> lock_of_another_thread() {
  static std::mutex held;
  static std::atomic<bool> taken{false};
  static Other* other = new Other{[] {
    const std::lock_guard lock{held};
    taken = true;
    usleep(25'000);
  }};
  return [] {
    taken = false;
    other->ask();
    while (!taken) usleep(100);
    const std::lock_guard lock{held};
  };
}

std::function<void()> answer_on_a_socket() {
  static int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::exit(2);
  static Other* other = new Other{[] {
    usleep(25'000);
    if (write(ends[1], "x", 1) != 1) std::exit(2);
  }};
  return [] {
    char answer = 0;
    other->ask();
    if (recv(ends[0], &answer, 1, 0) != 1) std::exit(2);
  };
}

std::function<void()> writes_to_a_file() {
  constexpr std::size_t kBlock = 1 << 20;
  static void* const block = std::aligned_alloc(4096, kBlock);
  std::memset(block, 'x', kBlock);
  const char* folder = std::getenv("WAITS_FOLDER");
  const std::string path = std::string(folder != nullptr ? folder : ".") + "/waits.tmp";
  const int flags = O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_DSYNC;
  // Past the cache where the file system can, so that next to no processor time goes into it.
  static int file = open(path.c_str(), flags | O_DIRECT, 0600);
  if (file < 0) file = open(path.c_str(), flags, 0600);
  if (file < 0) std::exit(2);
  return [] {
    // As long as it takes to be held up for some time: disks differ.
    const auto until = Clock::now() + kHeldUp;
    while (Clock::now() < until)
      if (pwrite(file, block, kBlock, 0) < 0) std::exit(2);
  };
}

/// Children that leave nobody a processor, as long as the parent lives.
std::function<void()> processors_of_others() {
  const long count = 4 * sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 0; i < count; ++i)
    if (const pid_t parent = getpid(); fork() == 0)
      while (getppid() == parent) burn(milliseconds(20));
  return [] { burn_processor_time(milliseconds(8)); };
}

std::function<void()> log_that_nobody_reads_fast() {
  static int ends[2];
  if (pipe(ends) != 0) std::exit(2);
  // Standard error is a pipe that is read slowly; gpudiag's lines go elsewhere in this test.
  dup2(ends[1], STDERR_FILENO);
  std::thread{[] {
    static char text[65536];
    while (read(ends[0], text, sizeof text) > 0) usleep(25'000);
  }}.detach();
  return [] {
    static char text[65536];
    std::memset(text, '.', sizeof text);
    if (write(STDERR_FILENO, text, sizeof text) < 0) std::exit(2);
  };
}

std::function<void()> trouble_named(const std::string& name) {
  if (name == "lock") return lock_of_another_thread();
  if (name == "network") return answer_on_a_socket();
  if (name == "disk") return writes_to_a_file();
  if (name == "preempted") return processors_of_others();
  if (name == "logging") return log_that_nobody_reads_fast();
  if (name == "cpu") return [] { burn_processor_time(kHeldUp); };
  if (name == "asleep") return [] { usleep(25'000); };
  if (name == "nothing") return [] { usleep(500); };
  std::fprintf(stderr, "no such trouble: %s\n", name.c_str());
  std::exit(2);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  float* values = nullptr;
  if (cudaMalloc(&values, 1 << 20) != cudaSuccess) return 1;
  const auto trouble = trouble_named(arguments[1]);
  const auto until = Clock::now() + std::chrono::duration<double>(std::atof(arguments[2]));
  int iterations = 0;
  for (; Clock::now() < until; ++iterations) {
    for (int i = 0; i < 20; ++i) work<<<4, 128>>>(values);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    trouble();
  }
  std::printf("held up by %s\n", arguments[1]);
  return 0;
}
