// SPDX-License-Identifier: Apache-2.0
//
// CUPTI on the simulated GPU itself: a program's calls come out as records that agree with the
// truth the core writes by a path of its own.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "client.hpp"
#include "own_process.hpp"
#include "tests/harness.hpp"

using namespace simgpu::testing;
using simgpu_test::Gate;
using simgpu_test::launch_timed;

namespace {

// What is true of an operation, by launch and graph node.
struct TrueOperation {
  std::string kind;
  std::int64_t start_ns;
  std::int64_t end_ns;
};
using Key = std::pair<std::uint32_t, std::uint64_t>;
using Truth = std::map<Key, TrueOperation>;

std::int64_t field(const std::string& line, const std::string& name) {
  std::smatch match;
  return std::regex_search(line, match, std::regex('"' + name + "\":(-?\\d+)"))
             ? std::stoll(match[1])
             : -1;
}

std::string word(const std::string& line, const std::string& name) {
  std::smatch match;
  return std::regex_search(line, match, std::regex('"' + name + "\":\"([^\"]*)\""))
             ? std::string(match[1])
             : std::string();
}

Truth read_truth(const std::string& path) {
  Truth truth;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::string kind = word(line, "kind");
    if (word(line, "type") == "operation" &&
        (kind == "kernel" || kind == "memcpy" || kind == "memset")) {
      truth[{static_cast<std::uint32_t>(field(line, "correlation")),
             static_cast<std::uint64_t>(field(line, "node"))}] = {
          kind, field(line, "start_ns"), field(line, "end_ns")};
    }
  }
  return truth;
}

// CUPTI's records in the form of the truth; times in CUPTI's clock.
template <class Record>
void add_records(Truth& found, CUpti_ActivityKind kind, const char* name) {
  for (const auto& record : client().of<Record>(kind)) {
    found[{record.correlationId, record.graphNodeId}] = {
        name, static_cast<std::int64_t>(record.start), static_cast<std::int64_t>(record.end)};
  }
}

Truth records() {
  Truth found;
  add_records<CUpti_ActivityKernel10>(found, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernel");
  add_records<CUpti_ActivityMemcpy6>(found, CUPTI_ACTIVITY_KIND_MEMCPY, "memcpy");
  add_records<CUpti_ActivityMemset4>(found, CUPTI_ACTIVITY_KIND_MEMSET, "memset");
  return found;
}

void start_all() {
  start();
  for (const auto kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION}) {
    ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);
  }
}

void launch_graph(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(launch_timed(5'000, stream), cudaSuccess);
  }
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
}

// Kernels on two streams, copies, a memset, an event between the streams and a graph.
void run_program() {
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  std::vector<char> host(65'536);
  ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, host.size()), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(memory, host.data(), host.size(), cudaMemcpyHostToDevice, first),
            cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, host.size(), first), cudaSuccess);
  ASSERT_EQ(launch_timed(20'000, first), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  ASSERT_EQ(launch_timed(30'000, second), cudaSuccess);
  launch_graph(second);
  ASSERT_EQ(cudaMemcpy(host.data(), memory, host.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace

TEST(Stack, EveryRecordAgreesWithTheTruthOfTheSameRun) {
  char path[] = "/tmp/simgpu_truth_XXXXXX";
  close(mkstemp(path));
  setenv("SIMGPU_TRUTH", path, 1);
  in_own_process("", [&] {
    start_all();
    run_program();
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    // The truth reaches its file within 100 ms.
    Truth truth;
    const Truth found = records();
    for (int i = 0; i < 300 && truth.size() < found.size(); ++i) {
      usleep(10'000);
      truth = read_truth(path);
    }
    EXPECT_EQ(found.size(), 8U);  // 5 kernels, 2 copies, 1 memset
    ASSERT_EQ(truth.size(), found.size());
    for (const auto& [key, real] : truth) {
      ASSERT_EQ(found.count(key), 1U) << key.first << '/' << key.second;
      const TrueOperation& seen = found.at(key);
      EXPECT_EQ(seen.kind, real.kind);
      EXPECT_EQ(seen.end_ns - seen.start_ns, real.end_ns - real.start_ns);
    }
  });
  unlink(path);
  unsetenv("SIMGPU_TRUTH");
}

TEST(Stack, EveryOperationJoinsACallThatLaunchedItBeforeItStarted) {
  in_own_process("", [] {
    start_all();
    run_program();
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    std::map<std::uint32_t, CUpti_ActivityAPI> calls;
    for (const auto& call : client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME)) {
      EXPECT_TRUE(calls.emplace(call.correlationId, call).second) << "two calls share an id";
    }
    for (const auto& [key, seen] : records()) {
      ASSERT_EQ(calls.count(key.first), 1U);
      EXPECT_GT(seen.start_ns, static_cast<std::int64_t>(calls.at(key.first).start));
    }
    EXPECT_EQ(client().of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
                  .back()
                  .type,
              CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
  });
}

TEST(Stack, AKernelThatHasNotRunWithholdsItsThreadsRecords) {
  in_own_process("", [] {
    start_all();
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    Gate gate(stream);
    ASSERT_EQ(launch_timed(1'000, stream), cudaSuccess);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(client().kinds().size(), 0U);
    gate.open();
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 1U);
  });
}

TEST(Stack, AForcedFlushHandsOutAKernelThatHasNotRunWithoutAnEnd) {
  in_own_process("", [] {
    start_all();
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    Gate gate(stream);
    ASSERT_EQ(launch_timed(1'000, stream), cudaSuccess);
    ASSERT_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_EQ(kernels()[0].end, 0U);
    gate.open();
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 1U);
  });
}

TEST(Stack, AClientMayFlushFromTheExitCallbackOfACall) {
  in_own_process("", [] {
    start_all();
    CUpti_SubscriberHandle handle = nullptr;
    ASSERT_EQ(cuptiSubscribe(
                  &handle,
                  [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
                    if (static_cast<const CUpti_CallbackData*>(data)->callbackSite ==
                        CUPTI_API_EXIT) {
                      EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
                    }
                  },
                  nullptr),
              CUPTI_SUCCESS);
    ASSERT_EQ(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API,
                                  CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020),
              CUPTI_SUCCESS);
    run_program();
    EXPECT_EQ(records().size(), 8U);
  });
}
