// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

extern "C" {
void** __cudaRegisterFatBinary(void* image);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* name,
                            const char* device_name, int thread_limit, uint3* tid, uint3* bid,
                            dim3* block, dim3* grid, int* warp_size);
}

namespace simgpu_test {
namespace {

void timed_stub() {}

bool register_timed() {
  static char image[8] = {};
  static char name[] = "timed";
  void** handle = __cudaRegisterFatBinary(image);
  __cudaRegisterFunction(handle, static_cast<const char*>(timed_function()), name, name, -1,
                         nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(handle);
  return true;
}

const bool kRegistered = register_timed();

// What the listener has seen; leaked, since the core may deliver until the process ends.
struct Seen {
  std::mutex mutex;
  std::vector<simgpu::OperationRecord> operations;
  std::vector<simgpu::SyncRecord> syncs;
  std::vector<simgpu::MemoryRecord> memory;
  std::vector<Recording::Call> calls;
};

Seen& seen() {
  static auto* const kSeen = new Seen;
  return *kSeen;
}

void on_enter(simgpu::ApiCall& call) {
  const std::lock_guard guard(seen().mutex);
  call.tool_data[0] = seen().calls.size();
  seen().calls.push_back({call.function_name, call.symbol_name == nullptr ? "" : call.symbol_name,
                          call.cbid, call.correlation_id, -1, false});
}

void on_exit(simgpu::ApiCall& call) {
  const std::lock_guard guard(seen().mutex);
  if (call.tool_data[0] >= seen().calls.size()) return;
  Recording::Call& entered = seen().calls[call.tool_data[0]];
  entered.result = *static_cast<int*>(call.return_value);
  entered.exited = entered.correlation_id == call.correlation_id;
}

std::uint64_t on_queued(const simgpu::OperationRecord& operation) {
  return operation.id;
}

void on_finished(const simgpu::OperationRecord& operation) {
  if (operation.tag == 0) return;  // queued before the recording began
  const std::lock_guard guard(seen().mutex);
  EXPECT_EQ(operation.tag, operation.id) << "the tag of operation_queued must come back";
  seen().operations.push_back(operation);
}

void on_sync(const simgpu::SyncRecord& sync) {
  const std::lock_guard guard(seen().mutex);
  seen().syncs.push_back(sync);
}

void on_memory(const simgpu::MemoryRecord& memory) {
  const std::lock_guard guard(seen().mutex);
  seen().memory.push_back(memory);
}

constexpr simgpu::Listener kListener = {on_enter, on_exit,   on_queued, on_finished,
                                        on_sync,  on_memory, nullptr};

}  // namespace

const void* timed_function() {
  return reinterpret_cast<const void*>(&timed_stub);
}

cudaError_t launch_timed(std::uint64_t duration_ns, cudaStream_t stream, dim3 grid, dim3 block) {
  void* arguments[] = {&duration_ns};
  return cudaLaunchKernel(timed_function(), grid, block, arguments, 0, stream);
}

cudaKernelNodeParams timed_node(std::uint64_t& duration_ns) {
  static thread_local void* arguments[1];
  arguments[0] = &duration_ns;
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(timed_function());
  params.gridDim = dim3(1);
  params.blockDim = dim3(1);
  params.kernelParams = arguments;
  return params;
}

Gate::Gate(cudaStream_t stream) {
  const auto wait = [](void* self) {
    auto* gate = static_cast<Gate*>(self);
    std::unique_lock lock(gate->mutex_);
    gate->changed_.wait(lock, [gate] { return gate->open_; });
    gate->passed_ = true;
    gate->changed_.notify_all();
  };
  EXPECT_EQ(cudaLaunchHostFunc(stream, wait, this), cudaSuccess);
}

void Gate::open() {
  // Everything queued behind the gate shall have reached the device when it opens, so that starts
  // follow from what the operations wait for and not from when they were launched.
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  std::unique_lock lock(mutex_);
  open_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return passed_; });
}

Gate::~Gate() {
  open();
}

Recording::Recording() {
  const std::lock_guard guard(seen().mutex);
  seen().operations.clear();
  seen().syncs.clear();
  seen().memory.clear();
  seen().calls.clear();
  simgpu::set_listener(&kListener);
  simgpu::set_wanted(simgpu::kWantRuntimeApi | simgpu::kWantDriverApi | simgpu::kWantOperations |
                     simgpu::kWantSyncs | simgpu::kWantMemory | simgpu::kWantSymbols);
}

Recording::~Recording() {
  simgpu::set_wanted(0);
}

void Recording::finish() {
  int devices = 0;
  int current = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  for (int device = 0; device < devices; ++device) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ASSERT_EQ(cudaSetDevice(current), cudaSuccess);
  simgpu::deliver_finished();
}

std::vector<simgpu::OperationRecord> Recording::operations(simgpu::OperationKind kind) const {
  const std::lock_guard guard(seen().mutex);
  std::vector<simgpu::OperationRecord> found;
  for (const auto& operation : seen().operations) {
    if (operation.kind == kind) found.push_back(operation);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return found;
}

std::vector<simgpu::SyncRecord> Recording::syncs() const {
  const std::lock_guard guard(seen().mutex);
  return seen().syncs;
}

std::vector<simgpu::MemoryRecord> Recording::memory() const {
  const std::lock_guard guard(seen().mutex);
  return seen().memory;
}

std::vector<Recording::Call> Recording::calls() const {
  const std::lock_guard guard(seen().mutex);
  return seen().calls;
}

TestStream::TestStream(unsigned flags) {
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
}

TestStream::~TestStream() {
  cudaStreamDestroy(stream_);
}

}  // namespace simgpu_test
