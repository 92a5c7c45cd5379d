// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI tells of CUDA graphs.
#include <fmt/format.h>

#include "checks.hpp"

namespace gpudiag::device {
namespace {

/// Three kernels one after the other, captured.
cudaGraphExec_t make_graph(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launch_spin(stream, kShortNs), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  return exec;
}

TEST_F(Graphs, NodesCarryTheIdOfTheirLaunchAndTheExecutableGraph) {
  row(13);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaStream_t stream;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraphExec_t exec = make_graph(stream);
  ASSERT_NE(exec, nullptr);
  for (int i = 0; i < 2; ++i) ASSERT_CUDA(cudaGraphLaunch(exec, stream));
  deliver();
  const auto launches = client().calls(CUPTI_CB_DOMAIN_RUNTIME_API, "cudaGraphLaunch");
  auto kernels = client().kernels();
  ASSERT_EQ(launches.size(), 2u);
  ASSERT_EQ(kernels.size(), 6u);
  std::uint32_t exec_id = 0;
  ASSERT_CUPTI(cuptiGetGraphExecId(exec, &exec_id));
  std::map<std::uint32_t, int> nodes;
  for (const auto& kernel : kernels) {
    ++nodes[kernel.correlationId];
    EXPECT_EQ(kernel.graphId, exec_id);
    EXPECT_NE(kernel.graphNodeId, 0u);
  }
  EXPECT_EQ(nodes, (std::map<std::uint32_t, int>{{launches[0].correlationId, 3}, {launches[1].correlationId, 3}}));
}

TEST_F(Graphs, OneExecutableGraphNeverOverlapsItself) {
  row(35);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaStream_t one, two;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  ASSERT_CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  cudaGraphExec_t exec = make_graph(one);
  ASSERT_NE(exec, nullptr);
  ASSERT_CUDA(cudaGraphLaunch(exec, one));
  ASSERT_CUDA(cudaGraphLaunch(exec, two));
  deliver();
  auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 6u);
  std::ranges::sort(kernels, {}, &CUpti_ActivityKernel9::start);
  for (std::size_t i = 1; i < kernels.size(); ++i) EXPECT_GE(kernels[i].start, kernels[i - 1].end);
  EXPECT_EQ(kernels[0].correlationId, kernels[2].correlationId);
  const auto launches = client().calls(CUPTI_CB_DOMAIN_RUNTIME_API, "cudaGraphLaunch");
  ASSERT_EQ(launches.size(), 2u);
  measured(fmt::format("{} ns from the launch call to the first kernel",
                       static_cast<std::int64_t>(kernels[0].start - launches[0].start)));
}

}  // namespace
}  // namespace gpudiag::device
