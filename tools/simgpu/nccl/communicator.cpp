// SPDX-License-Identifier: Apache-2.0
#include "nccl/communicator.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <tuple>

#include "core/clock.hpp"
#include "core/kernels.hpp"

namespace simgpu::nccl {
namespace {

constexpr std::uint64_t kScramble = 0x9e3779b97f4a7c15ULL;

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memmove(to, from, bytes);
}

// Bytes of each of `parts` that move: all of them together fit into a slot. Whole elements.
std::size_t moved_part(std::size_t part_bytes, std::size_t parts) {
  return std::min(part_bytes, kMovedBytes / std::max<std::size_t>(parts, 1) / 16 * 16);
}

std::uint64_t signature(const Task& task) {
  std::uint64_t value = static_cast<std::uint64_t>(task.kind) + 1;
  for (const std::uint64_t word :
       {std::uint64_t{task.count}, static_cast<std::uint64_t>(task.type),
        static_cast<std::uint64_t>(task.rule.kind), std::uint64_t{task.peer}}) {
    value = (value ^ word) * kScramble;
  }
  return value;
}

}  // namespace

const RemoteKernel Communicator::kRemote{&Communicator::queued, &Communicator::started};

// One send or receive on its way.
struct Communicator::Message {
  const Task* task;
  std::uint64_t number;  // of those between the two ranks in this direction
  bool offered = false;
  bool done = false;
  std::int64_t end_ns = 0;
};

Communicator::Communicator(Segment* segment, std::int32_t owner, std::uint64_t token,
                           std::uint32_t ranks, std::uint32_t rank)
    : segment_(segment),
      owner_(owner),
      token_(token),
      ranks_(ranks),
      rank_(rank),
      sent_(ranks, 0),
      received_(ranks, 0) {}

Communicator* Communicator::enter(std::int32_t owner, std::uint64_t token, std::uint32_t ranks,
                                  std::uint32_t rank) {
  remove_orphans();
  Segment* segment = Segment::attach(segment_name(owner, token), ranks, rank);
  if (segment == nullptr) return nullptr;
  auto* communicator = new Communicator(segment, owner, token, ranks, rank);
  // The job's signals are the job's: this thread takes none of them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([communicator] { communicator->run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return communicator;
}

template <typename Ready>
bool Communicator::await(Ready&& ready) {
  for (;;) {
    const std::uint32_t ticket = segment_->ticket();
    if (ready()) return true;
    if (aborted_.load()) return false;
    segment_->sleep(ticket);
  }
}

Result Communicator::wait_complete() {
  if (!await([this] { return segment_->complete(); })) return kInternalError;
  open_profiler(profiler_, number(), ranks_, rank_);
  return kSuccess;
}

std::uint64_t Communicator::number() const {
  return (token_ ^ static_cast<std::uint64_t>(owner_)) * kScramble;
}

Result Communicator::launch(Plan* plan, cudaStream_t stream) {
  plan->communicator = this;
  {
    const std::lock_guard guard(mutex_);
    if (closed_) return kInvalidArgument;
  }
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) return kCudaError;
  plan->captured = status != cudaStreamCaptureStatusNone;
  Kernel* kernel = library_kernel(kernel_name(*plan), &kRemote);
  void* argument = plan;
  void* arguments[] = {&argument};
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(channels(*plan));
  configuration.blockDim = dim3(kThreads);
  configuration.stream = stream;
  void* told = profile_launch_begins(*plan, stream);
  // The worker deletes the plan when the kernel has ended.
  const Plan before = *plan;
  const cudaError_t error =
      cudaLaunchKernelExC(&configuration, reinterpret_cast<const void*>(kernel), arguments);
  profile_launch_ends(told);
  if (error != cudaSuccess) return kCudaError;
  profile_plan(before);
  return kSuccess;
}

void Communicator::queued(void* plan, Operation* operation, std::int64_t extra_ns) {
  auto* work = static_cast<Plan*>(plan);
  Communicator& self = *work->communicator;
  const std::lock_guard guard(self.mutex_);
  self.launches_.push_back(Launch{work, operation, extra_ns, 0, false});
}

void Communicator::started(void* plan, Operation* operation, std::int64_t start_ns) {
  Communicator& self = *static_cast<Plan*>(plan)->communicator;
  const std::lock_guard guard(self.mutex_);
  // Mostly the newest.
  const auto at = std::find_if(self.launches_.rbegin(), self.launches_.rend(),
                               [&](const Launch& launch) { return launch.operation == operation; });
  if (at == self.launches_.rend()) return;
  at->start_ns = start_ns;
  at->started = true;
  self.changed_.notify_one();
}

void Communicator::close() {
  close_profiler(profiler_);
  const std::lock_guard guard(mutex_);
  closed_ = true;
  changed_.notify_one();
}

void Communicator::abort() {
  aborted_.store(true);
  close();
  segment_->wake();
}

// Waits for the oldest kernel to start; false when there will be none any more.
bool Communicator::next(Launch& launch) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!launches_.empty() && launches_.front().started) {
      const std::int64_t ahead = launches_.front().start_ns - now_ns();
      if (ahead <= 0) break;
      changed_.wait_for(lock, std::chrono::nanoseconds(ahead));
    } else if (closed_ && launches_.empty()) {
      return false;
    } else {
      changed_.wait(lock);
    }
  }
  launch = launches_.front();
  launches_.pop_front();
  return true;
}

void Communicator::run() {
  pthread_setname_np(pthread_self(), "simgpu-nccl");
  // Waking up must not push the thread that launches off its core: hardware would not.
  const sched_param parameters{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters);
  Launch launch{};
  while (next(launch)) {
    settle_memory();  // the kernel reads what was there at its start
    const std::int64_t end_ns = perform(launch);
    Plan* plan = launch.plan;
    const bool captured = plan->captured;
    remote_ended(launch.operation, end_ns);
    if (!captured) delete plan;
  }
}

std::int64_t Communicator::perform(const Launch& launch) {
  std::int64_t end_ns = std::max(launch.start_ns, last_end_ns_);
  if (!await([this] { return segment_->complete(); })) return now_ns();
  const auto is_message = [](const Task& task) {
    return task.kind == TaskKind::send || task.kind == TaskKind::receive;
  };
  for (const Task& task : launch.plan->tasks) {
    if (!is_message(task)) end_ns = std::max(end_ns, collective(task, launch));
    last_end_ns_ = end_ns;
  }
  if (std::any_of(launch.plan->tasks.begin(), launch.plan->tasks.end(), is_message)) {
    end_ns = std::max(end_ns, messages(launch));
  }
  last_end_ns_ = end_ns;
  return end_ns;
}

void Communicator::put_in(const Task& task, const Launch& launch) {
  RankPart& mine = segment_->rank(rank_);
  const std::size_t slot = collectives_ % kRing;
  const std::size_t parts = shape_of(task, rank_, ranks_).input_parts;
  const std::size_t moved = moved_part(task.bytes(), parts);
  for (std::size_t part = 0; part < parts; ++part) {
    copy_bytes(mine.data[slot].data() + part * moved, task.input + part * task.bytes(), moved);
  }
  mine.posts[slot] =
      Post{std::max(launch.start_ns, last_end_ns_), launch.extra_ns, signature(task)};
  mine.posted.store(collectives_, std::memory_order_release);
  segment_->wake();
}

void Communicator::take_out(const Task& task) {
  const std::size_t slot = collectives_ % kRing;
  const auto data = [&](std::size_t rank) {
    return segment_->rank(static_cast<std::uint32_t>(rank)).data[slot].data();
  };
  const std::size_t parts = shape_of(task, rank_, ranks_).output_parts;
  if (parts == 0) return;
  const std::uint32_t source = task.kind == TaskKind::broadcast || task.kind == TaskKind::scatter
                                   ? task.peer
                                   : rank_;
  const std::size_t input_parts = shape_of(task, source, ranks_).input_parts;
  const std::size_t moved = moved_part(task.bytes(), input_parts);
  // Where in every rank's input lies what this rank gets.
  const std::size_t offset = input_parts > 1 ? rank_ * moved : 0;
  switch (task.kind) {
    case TaskKind::all_reduce:
    case TaskKind::reduce:
    case TaskKind::reduce_scatter: {
      std::vector<const std::byte*> inputs;
      for (std::size_t r = 0; r < ranks_; ++r) inputs.push_back(data(r) + offset);
      reduce(task.type, task.rule, inputs, task.output, moved);
      return;
    }
    case TaskKind::broadcast:
    case TaskKind::scatter:
      copy_bytes(task.output, data(task.peer) + offset, moved);
      return;
    default:
      for (std::size_t r = 0; r < parts; ++r) {
        copy_bytes(task.output + r * task.bytes(), data(r) + offset, moved);
      }
  }
}

std::int64_t Communicator::collective(const Task& task, const Launch& launch) {
  ++collectives_;
  RankPart& mine = segment_->rank(rank_);
  const auto all = [this](auto&& counter, std::uint64_t least) {
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      if ((segment_->rank(r).*counter).load(std::memory_order_acquire) < least) return false;
    }
    return true;
  };
  const std::uint64_t free_from = collectives_ > kRing ? collectives_ - kRing : 0;
  if (!await([&] { return all(&RankPart::consumed, free_from); })) return now_ns();
  put_in(task, launch);
  if (!await([&] { return all(&RankPart::posted, collectives_); })) return now_ns();
  std::int64_t start_ns = 0;
  std::int64_t extra_ns = 0;
  bool agreed = true;
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    const Post& post = segment_->rank(r).posts[collectives_ % kRing];
    start_ns = std::max(start_ns, post.start_ns);
    extra_ns = std::max(extra_ns, post.extra_ns);
    agreed = agreed && post.signature == signature(task);
  }
  if (agreed) {
    take_out(task);
  } else {
    error_.store(kInvalidUsage);  // real ranks would hang, or worse
  }
  mine.consumed.store(collectives_, std::memory_order_release);
  segment_->wake();
  return start_ns + extra_ns + static_cast<std::int64_t>(task_ns(task, ranks_));
}

// One step of a send or a receive, as far as the other side has come. True if it got further.
bool Communicator::advance(Message& message, const Launch& launch) {
  const Task& task = *message.task;
  const bool sends = task.kind == TaskKind::send;
  PairPart& pair = sends ? segment_->pair(rank_, task.peer) : segment_->pair(task.peer, rank_);
  const std::size_t slot = message.number % kRing;
  const std::size_t moved = moved_part(task.bytes(), 1);
  const std::int64_t start_ns = std::max(launch.start_ns, last_end_ns_) + launch.extra_ns;
  auto& mine = sends ? pair.sent : pair.awaited;
  auto& theirs = sends ? pair.awaited : pair.sent;
  auto& freed = sends ? pair.received : pair.settled;  // by them: my entries they have read
  auto& read = sends ? pair.settled : pair.received;   // by me
  if (!message.offered) {
    if (mine.load() != message.number - 1 || freed.load() + kRing < message.number) return false;
    (sends ? pair.send_start_ns : pair.receive_start_ns)[slot] = start_ns;
    if (sends) {
      pair.bytes[slot] = task.bytes();
      copy_bytes(pair.data[slot].data(), task.input, moved);
    }
    mine.store(message.number, std::memory_order_release);
    return message.offered = true;
  }
  if (theirs.load(std::memory_order_acquire) < message.number) return false;
  const std::int64_t other_ns = (sends ? pair.receive_start_ns : pair.send_start_ns)[slot];
  if (!sends) {
    const std::size_t sent = pair.bytes[slot];
    if (sent != task.bytes()) error_.store(kInvalidUsage);
    copy_bytes(task.output, pair.data[slot].data(), moved_part(std::min(task.bytes(), sent), 1));
  }
  message.end_ns =
      std::max(start_ns, other_ns) + static_cast<std::int64_t>(task_ns(task, ranks_));
  read.store(message.number, std::memory_order_release);
  return message.done = true;
}

std::int64_t Communicator::messages(const Launch& launch) {
  std::vector<Message> open;
  for (const Task& task : launch.plan->tasks) {
    if (task.kind == TaskKind::send) open.push_back(Message{&task, ++sent_[task.peer]});
    if (task.kind == TaskKind::receive) open.push_back(Message{&task, ++received_[task.peer]});
  }
  const auto step = [&] {
    bool changed = false;
    for (Message& message : open) {
      while (!message.done && advance(message, launch)) changed = true;
    }
    if (changed) segment_->wake();
    return std::all_of(open.begin(), open.end(), [](const Message& m) { return m.done; });
  };
  if (!await(step)) return now_ns();
  std::int64_t end_ns = 0;
  for (const Message& message : open) end_ns = std::max(end_ns, message.end_ns);
  return end_ns;
}

Result Communicator::split(int color, int key, Communicator** out) {
  ++splits_;
  const auto all = [this](auto&& counter, std::uint64_t least) {
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      if ((segment_->rank(r).*counter).load(std::memory_order_acquire) < least) return false;
    }
    return true;
  };
  if (!await([&] { return all(&RankPart::split_consumed, splits_ - 1); })) return kInternalError;
  RankPart& mine = segment_->rank(rank_);
  mine.color = color;
  mine.key = key;
  mine.split_posted.store(splits_, std::memory_order_release);
  segment_->wake();
  if (!await([&] { return all(&RankPart::split_posted, splits_); })) return kInternalError;
  std::vector<std::tuple<int, std::uint32_t>> members;  // in the order of their new ranks
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    if (segment_->rank(r).color == color) members.emplace_back(segment_->rank(r).key, r);
  }
  mine.split_consumed.store(splits_, std::memory_order_release);
  segment_->wake();
  *out = nullptr;
  if (color == kSplitNoColor) return kSuccess;
  std::sort(members.begin(), members.end());
  const auto at = std::find(members.begin(), members.end(), std::tuple(key, rank_));
  const std::uint64_t token =
      (token_ ^ (splits_ * kScramble)) * kScramble + static_cast<std::uint64_t>(color) + 1;
  *out = enter(owner_, token, static_cast<std::uint32_t>(members.size()),
               static_cast<std::uint32_t>(at - members.begin()));
  return *out == nullptr ? kSystemError : kSuccess;
}

}  // namespace simgpu::nccl
