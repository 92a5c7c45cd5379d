// SPDX-License-Identifier: Apache-2.0
//
// One rank of a communicator, and the thread that waits for the other ranks.
//
// launch → engine → queued(), started() → **worker** ↔ Segment ↔ other ranks
//                                            ↓
//                                      remote_ended(): the kernel's end is known
//
// A rank enters its start into the shared memory. When all have, each computes the same end: the
// latest start plus the duration. So the times do not depend on how soon the threads wake up.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "core/remote.hpp"
#include "nccl/plan.hpp"
#include "nccl/profiler.hpp"
#include "nccl/segment.hpp"

namespace simgpu::nccl {

constexpr std::uint32_t kCommunicatorMagic = 0x4e43434c;

// Leaked on purpose: graphs and handles may outlive ncclCommDestroy.
class Communicator {
 public:
  // Enters the shared memory; the worker waits for the others. Null where that is impossible.
  static Communicator* enter(std::int32_t owner, std::uint64_t token, std::uint32_t ranks,
                             std::uint32_t rank);
  static bool valid(const Communicator* communicator) {
    return communicator != nullptr && communicator->magic_ == kCommunicatorMagic;
  }

  // Blocks until all ranks have entered, or the communicator was aborted.
  Result wait_complete();
  // Launches a plan's kernel. Takes over the plan.
  Result launch(Plan* plan, cudaStream_t stream);
  // Exchanges colours by the host and makes the new communicator; null for kSplitNoColor.
  Result split(int color, int key, Communicator** out);
  // Queued kernels still end; those launched later do not.
  void close();
  // Kernels that wait end now.
  void abort();

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  // The same number on all ranks, as NCCL tells it to profilers and NVTX.
  std::uint64_t number() const;
  ProfilerContext& profiler() { return profiler_; }
  Result async_error() const { return static_cast<Result>(error_.load()); }
  static const RemoteKernel kRemote;

 private:
  struct Launch {
    Plan* plan;
    Operation* operation;
    std::int64_t extra_ns;
    std::int64_t start_ns;
    bool started;
  };
  struct Message;

  Communicator(Segment* segment, std::int32_t owner, std::uint64_t token, std::uint32_t ranks,
               std::uint32_t rank);
  void run();
  bool next(Launch& launch);
  std::int64_t perform(const Launch& launch);
  std::int64_t collective(const Task& task, const Launch& launch);
  std::int64_t messages(const Launch& launch);
  bool advance(Message& message, const Launch& launch);
  void put_in(const Task& task, const Launch& launch);
  void take_out(const Task& task);
  // Blocks until `ready` holds; false when aborted.
  template <typename Ready>
  bool await(Ready&& ready);
  static void queued(void* plan, Operation* operation, std::int64_t extra_ns);
  static void started(void* plan, Operation* operation, std::int64_t start_ns);

  std::uint32_t magic_ = kCommunicatorMagic;
  Segment* segment_;
  std::int32_t owner_;
  std::uint64_t token_;
  std::uint32_t ranks_;
  std::uint32_t rank_;

  std::mutex mutex_;  // taken under the engine's lock, never the other way round
  std::condition_variable changed_;
  std::deque<Launch> launches_;
  bool closed_ = false;
  std::atomic<bool> aborted_{false};
  std::atomic<int> error_{kSuccess};

  // The worker's own.
  std::uint64_t collectives_ = 0;
  std::int64_t last_end_ns_ = 0;
  std::vector<std::uint64_t> sent_;      // messages to each rank
  std::vector<std::uint64_t> received_;  // messages from each rank
  // The host's own.
  std::uint64_t splits_ = 0;
  ProfilerContext profiler_;
};

}  // namespace simgpu::nccl
