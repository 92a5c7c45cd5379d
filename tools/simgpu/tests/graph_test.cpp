// SPDX-License-Identifier: Apache-2.0
//
// CUDA graphs: capture, building by hand, launch, update.
#include <gtest/gtest.h>

#include <array>

#include "harness.hpp"

namespace simgpu_test {
namespace {

using simgpu::OperationKind;

class GraphTest : public testing::Test {
 protected:
  void TearDown() override {
    if (exec_ != nullptr) {
      EXPECT_EQ(cudaGraphExecDestroy(exec_), cudaSuccess);
    }
    if (graph_ != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    }
  }

  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  }
  void end() {
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  }
  void launch() { ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess); }

  std::size_t node_count() const {
    std::size_t count = 0;
    EXPECT_EQ(cudaGraphGetNodes(graph_, nullptr, &count), cudaSuccess);
    return count;
  }
  std::size_t edge_count() const {
    std::size_t count = 0;
    EXPECT_EQ(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count), cudaSuccess);
    return count;
  }

  TestStream stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

TEST_F(GraphTest, CapturedWorkRunsOnlyAtTheLaunch) {
  Recording recording;
  begin();
  ASSERT_EQ(launch_timed(3000, stream_), cudaSuccess);
  ASSERT_EQ(launch_timed(4000, stream_), cudaSuccess);
  end();
  recording.finish();
  EXPECT_TRUE(recording.kernels().empty());
  EXPECT_EQ(node_count(), 2U);
  EXPECT_EQ(edge_count(), 1U);
  launch();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[1].start_ns, kernels[0].end_ns);
  EXPECT_EQ(kernels[0].end_ns - kernels[0].start_ns, 3000);
  EXPECT_EQ(kernels[0].correlation_id, kernels[1].correlation_id) << "that of the launch";
  EXPECT_NE(kernels[0].graph_id, 0U);
  EXPECT_NE(kernels[0].graph_node_id, kernels[1].graph_node_id);
  const auto graphs = recording.operations(OperationKind::graph_launch);
  ASSERT_EQ(graphs.size(), 1U);
  EXPECT_EQ(graphs[0].start_ns, kernels[0].start_ns);
  EXPECT_EQ(graphs[0].end_ns, kernels[1].end_ns);
}

TEST_F(GraphTest, NodesKeepTheirIdsOverLaunches) {
  begin();
  ASSERT_EQ(launch_timed(1000, stream_), cudaSuccess);
  end();
  Recording recording;
  launch();
  launch();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].graph_node_id, kernels[1].graph_node_id);
  EXPECT_EQ(kernels[0].graph_id, kernels[1].graph_id);
  EXPECT_NE(kernels[0].correlation_id, kernels[1].correlation_id);
  EXPECT_GE(kernels[1].start_ns, kernels[0].end_ns) << "one graph does not overlap itself";
}

// Nodes this short have ended before the host has queued the rest of the graph.
TEST_F(GraphTest, NodesFollowEachOtherHoweverLateTheHostQueuesThem) {
  constexpr std::size_t kNodes = 300;
  begin();
  for (std::size_t i = 0; i < kNodes; ++i) ASSERT_EQ(launch_timed(1, stream_), cudaSuccess);
  end();
  Recording recording;
  launch();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), kNodes);
  for (std::size_t i = 1; i < kNodes; ++i) {
    ASSERT_EQ(kernels[i].start_ns, kernels[i - 1].end_ns) << "node " << i;
  }
  EXPECT_EQ(recording.operations(OperationKind::graph_launch).at(0).end_ns, kernels.back().end_ns);
}

TEST_F(GraphTest, AForkByEventsRunsInParallelAndJoins) {
  TestStream side;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), cudaSuccess);
  begin();
  ASSERT_EQ(launch_timed(1000, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  ASSERT_EQ(launch_timed(8000, side), cudaSuccess);
  ASSERT_EQ(launch_timed(2000, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(join, side), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, join, 0), cudaSuccess);
  ASSERT_EQ(launch_timed(500, stream_), cudaSuccess);
  end();
  EXPECT_EQ(edge_count(), 4U);
  Recording recording;
  launch();
  recording.finish();
  const auto kernels = recording.kernels();  // first, side, middle, last
  ASSERT_EQ(kernels.size(), 4U);
  EXPECT_EQ(kernels[1].start_ns, kernels[0].end_ns);
  EXPECT_EQ(kernels[2].start_ns, kernels[0].end_ns);
  EXPECT_EQ(kernels[3].start_ns, kernels[1].end_ns) << "the longer branch";
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
}

TEST_F(GraphTest, AForkThatNeverJoinsIsAnError) {
  TestStream side;
  cudaEvent_t fork = nullptr;
  ASSERT_EQ(cudaEventCreate(&fork), cudaSuccess);
  begin();
  ASSERT_EQ(launch_timed(1000, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side, fork, 0), cudaSuccess);
  ASSERT_EQ(launch_timed(1000, side), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
  EXPECT_EQ(cudaStreamSynchronize(side), cudaSuccess) << "the side stream is free again";
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
}

TEST_F(GraphTest, AWaitInACaptureSpoilsIt) {
  begin();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(launch_timed(1000, stream_), cudaErrorStreamCaptureInvalidated);
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(GraphTest, AnAllocationInAGlobalCaptureIsRefusedAndInARelaxedOneNot) {
  void* memory = nullptr;
  begin();
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(GraphTest, TheLegacyStreamCannotJoinACaptureOfABlockingStream) {
  TestStream blocking(cudaStreamDefault);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(launch_timed(1000, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
}

TEST_F(GraphTest, BuiltByHandRunsEveryKindOfNode) {
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 64), cudaSuccess);
  ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
  std::uint64_t duration_ns = 6000;
  cudaKernelNodeParams kernel = timed_node(duration_ns);
  cudaMemsetParams fill{device, 64, 0x2a, 1, 64, 1};
  std::array<unsigned char, 64> out{};
  static int calls = 0;
  calls = 0;
  cudaHostNodeParams host{[](void*) { ++calls; }, nullptr};
  cudaGraphNode_t empty_node = nullptr;
  cudaGraphNode_t kernel_node = nullptr;
  cudaGraphNode_t fill_node = nullptr;
  cudaGraphNode_t copy_node = nullptr;
  cudaGraphNode_t host_node = nullptr;
  ASSERT_EQ(cudaGraphAddEmptyNode(&empty_node, graph_, nullptr, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphAddKernelNode(&kernel_node, graph_, &empty_node, 1, &kernel), cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemsetNode(&fill_node, graph_, &kernel_node, 1, &fill), cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&copy_node, graph_, &fill_node, 1, out.data(), device, 64,
                                     cudaMemcpyDeviceToHost),
            cudaSuccess);
  ASSERT_EQ(cudaGraphAddHostNode(&host_node, graph_, &copy_node, 1, &host), cudaSuccess);
  cudaGraphNodeType type{};
  ASSERT_EQ(cudaGraphNodeGetType(copy_node, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeMemcpy);
  ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  Recording recording;
  launch();
  launch();
  recording.finish();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(out[0], 0x2a);
  EXPECT_EQ(out[63], 0x2a);
  EXPECT_EQ(recording.kernels().size(), 2U);
  EXPECT_EQ(recording.operations(OperationKind::memset).size(), 2U);
  EXPECT_EQ(recording.operations(OperationKind::memcpy).size(), 2U);
  EXPECT_EQ(recording.operations(OperationKind::host_function).size(), 2U);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST_F(GraphTest, ACycleCannotBeInstantiated) {
  ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
  cudaGraphNode_t a = nullptr;
  cudaGraphNode_t b = nullptr;
  ASSERT_EQ(cudaGraphAddEmptyNode(&a, graph_, nullptr, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphAddEmptyNode(&b, graph_, &a, 1), cudaSuccess);
  ASSERT_EQ(cudaGraphAddDependencies(graph_, &b, &a, nullptr, 1), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaErrorInvalidValue);
  exec_ = nullptr;
}

TEST_F(GraphTest, AChildGraphRunsAsPartOfItsParent) {
  begin();
  ASSERT_EQ(launch_timed(1000, stream_), cudaSuccess);
  ASSERT_EQ(launch_timed(2000, stream_), cudaSuccess);
  cudaGraph_t child = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &child), cudaSuccess);
  ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
  std::uint64_t duration_ns = 500;
  const cudaKernelNodeParams kernel = timed_node(duration_ns);
  cudaGraphNode_t child_node = nullptr;
  cudaGraphNode_t last = nullptr;
  ASSERT_EQ(cudaGraphAddChildGraphNode(&child_node, graph_, nullptr, 0, child), cudaSuccess);
  ASSERT_EQ(cudaGraphAddKernelNode(&last, graph_, &child_node, 1, &kernel), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(child), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  Recording recording;
  launch();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[2].start_ns, kernels[1].end_ns);
  EXPECT_EQ(kernels[2].end_ns - kernels[2].start_ns, 500);
}

TEST_F(GraphTest, ParametersOfANodeCanBeChangedBetweenLaunches) {
  ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
  std::uint64_t duration_ns = 1000;
  cudaGraphNode_t node = nullptr;
  cudaKernelNodeParams kernel = timed_node(duration_ns);
  ASSERT_EQ(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &kernel), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  Recording recording;
  launch();
  duration_ns = 9000;
  kernel = timed_node(duration_ns);
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec_, node, &kernel), cudaSuccess);
  launch();
  ASSERT_EQ(cudaGraphNodeSetEnabled(exec_, node, 0), cudaSuccess);
  launch();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 2U) << "a disabled node does nothing";
  EXPECT_EQ(kernels[0].end_ns - kernels[0].start_ns, 1000);
  EXPECT_EQ(kernels[1].end_ns - kernels[1].start_ns, 9000);
}

TEST_F(GraphTest, AnUpdateTakesOverTheSameShapeAndRefusesAnother) {
  begin();
  ASSERT_EQ(launch_timed(1000, stream_), cudaSuccess);
  end();
  cudaGraph_t same = nullptr;
  begin();
  ASSERT_EQ(launch_timed(7000, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &same), cudaSuccess);
  cudaGraph_t longer = nullptr;
  begin();
  ASSERT_EQ(launch_timed(7000, stream_), cudaSuccess);
  ASSERT_EQ(launch_timed(7000, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &longer), cudaSuccess);
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_EQ(cudaGraphExecUpdate(exec_, longer, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_EQ(cudaGraphExecUpdate(exec_, same, &info), cudaSuccess);
  Recording recording;
  launch();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].end_ns - kernels[0].start_ns, 7000);
  EXPECT_EQ(cudaGraphDestroy(same), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(longer), cudaSuccess);
}

}  // namespace
}  // namespace simgpu_test
