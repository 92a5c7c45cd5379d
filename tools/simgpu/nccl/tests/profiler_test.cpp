// SPDX-License-Identifier: Apache-2.0
//
// NCCL's rules for profiler plugins: which library is loaded, which version of the interface is used,
// which events come and in which order. Each test is a process of its own under CTest.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "nccl/abi.hpp"

using namespace simgpu::nccl;

extern "C" {
int ncclCommInitAll(void** out, int count, const int* devices);
int ncclCommDestroy(void* communicator);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void* input, void* output, std::size_t count, int type, int reduction, void* communicator,
                  cudaStream_t stream);
int ncclSend(const void* input, std::size_t count, int type, int peer, void* communicator, cudaStream_t stream);
int ncclRecv(void* output, std::size_t count, int type, int peer, void* communicator, cudaStream_t stream);
}

namespace {

const std::string kFolder = SIMGPU_TEST_PLUGINS;

class NcclProfiler : public testing::Test {
 protected:
  void TearDown() override { close(); }

  // A communicator over one device: no thread but this one has anything to do with it.
  void open(const char* plugin, int mask, const char* loaded) {
    setenv("NCCL_PROFILER_PLUGIN", plugin, 1);
    setenv("PLUGIN_MASK", std::to_string(mask).c_str(), 1);
    ASSERT_EQ(ncclCommInitAll(&communicator, 1, nullptr), kSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 65536), cudaSuccess);
    if (loaded != nullptr) library = dlopen((kFolder + "/" + loaded).c_str(), RTLD_NOW | RTLD_NOLOAD);
  }
  void close() {
    if (communicator != nullptr) ncclCommDestroy(communicator);
    communicator = nullptr;
  }
  std::string log() const {
    if (library == nullptr) return "no plugin";
    return reinterpret_cast<const char* (*)()>(dlsym(library, "plugin_log"))();
  }
  int all_reduce(std::size_t count) {
    return ncclAllReduce(memory, memory, count, kFloat32, kSum, communicator, stream);
  }

  void* communicator = nullptr;
  void* library = nullptr;
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
};

constexpr int kMaskColl = 2;
constexpr int kMaskP2p = 4;
constexpr int kMaskLaunch = 1 << 11;

TEST_F(NcclProfiler, IsFoundByItsPathAndTheNewestVersionIsUsed) {
  open((kFolder + "/libnccl-profiler-newest.so").c_str(), 0, "libnccl-profiler-newest.so");
  EXPECT_EQ(log(), "init v6 ranks=1 rank=0\n");
}

TEST_F(NcclProfiler, IsFoundByTheMiddleOfItsName) {
  ASSERT_EQ(chdir("/"), 0);
  open("newest", 0, "libnccl-profiler-newest.so");  // LD_LIBRARY_PATH has the folder
  EXPECT_EQ(log(), "init v6 ranks=1 rank=0\n");
}

TEST_F(NcclProfiler, OfVersion4IsUsedWhereThereIsNoNewerOne) {
  open("libnccl-profiler-four.so", kMaskColl, "libnccl-profiler-four.so");
  ASSERT_EQ(all_reduce(10), kSuccess);
  EXPECT_EQ(log(), "init v4 ranks=1 rank=0\nstart of type 1\nstart coll AllReduce #0 count=10\nstop\nstop\n");
}

TEST_F(NcclProfiler, NoneMeansNone) {
  open("none", kMaskColl, "libnccl-profiler-newest.so");
  EXPECT_EQ(log(), "no plugin");
  EXPECT_EQ(all_reduce(10), kSuccess);
}

TEST_F(NcclProfiler, OneThatIsNotThereIsNoFailureOfNccl) {
  open("/no/such/plugin.so", kMaskColl, nullptr);
  EXPECT_EQ(all_reduce(10), kSuccess);
}

TEST_F(NcclProfiler, ThatRefusesIsSwitchedOff) {
  setenv("PLUGIN_FAILS", "1", 1);
  void* kept = dlopen((kFolder + "/libnccl-profiler-newest.so").c_str(), RTLD_NOW);
  open("libnccl-profiler-newest.so", kMaskColl, "libnccl-profiler-newest.so");
  ASSERT_EQ(all_reduce(10), kSuccess);
  EXPECT_EQ(log(), "init v6 ranks=1 rank=0\n");
  dlclose(kept);
}

TEST_F(NcclProfiler, StaticPluginIsTheProgramItself) {
  open("STATIC_PLUGIN", 0, nullptr);  // this program has none: as good as no plugin
  EXPECT_EQ(all_reduce(10), kSuccess);
}

TEST_F(NcclProfiler, AskedForCollectivesIsToldOfGroupsAndCallsToo) {
  open("newest", kMaskColl, "libnccl-profiler-newest.so");
  log();
  ASSERT_EQ(all_reduce(1000), kSuccess);
  EXPECT_EQ(log(),
            "start group_api depth=1\nstate 23\nstart coll_api AllReduce captured=0\nstop\nstate 24\n"
            "start group rank=0\nstart coll rank=0 AllReduce #0 count=1000 ncclFloat32 RING LL channels=1\nstop\nstop\n"
            "stop\n");
  ASSERT_EQ(all_reduce(1), kSuccess);
  EXPECT_NE(log().find("AllReduce #1 count=1 "), std::string::npos);
}

TEST_F(NcclProfiler, AskedForNothingHearsNothing) {
  open("newest", 0, "libnccl-profiler-newest.so");
  log();
  ASSERT_EQ(all_reduce(1000), kSuccess);
  EXPECT_EQ(log(), "");
}

TEST_F(NcclProfiler, ASendAndAReceiveShareAGroup) {
  open("newest", kMaskP2p, "libnccl-profiler-newest.so");
  log();
  ncclGroupStart();
  ASSERT_EQ(ncclSend(memory, 4, kFloat32, 0, communicator, stream), kSuccess);
  ASSERT_EQ(ncclRecv(memory, 4, kFloat32, 0, communicator, stream), kSuccess);
  ASSERT_EQ(ncclGroupEnd(), kSuccess);
  EXPECT_EQ(log(),
            "start group_api depth=2\nstate 23\nstart p2p_api Send\nstop\nstart p2p_api Recv\nstop\nstate 24\n"
            "start group rank=0\nstart p2p rank=0 Send peer=0 count=4\nstart p2p rank=0 Recv peer=0 count=4\n"
            "stop\nstop\nstop\nstop\n");
}

TEST_F(NcclProfiler, ALaunchComesBeforeThePlan) {
  open("newest", kMaskLaunch | kMaskColl, "libnccl-profiler-newest.so");
  log();
  ASSERT_EQ(all_reduce(1), kSuccess);
  const std::string text = log();
  EXPECT_LT(text.find("start kernel_launch\nstop\nstart group rank=0"), text.size()) << text;
}

TEST_F(NcclProfiler, OfWhatGoesIntoAGraphOnlyTheCallIsTold) {
  open("newest", kMaskColl, "libnccl-profiler-newest.so");
  log();
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(all_reduce(1), kSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  const std::string text = log();
  EXPECT_NE(text.find("start coll_api AllReduce captured=1"), std::string::npos) << text;
  EXPECT_EQ(text.find("start coll rank"), std::string::npos) << text;
}

TEST_F(NcclProfiler, ItsLibraryIsClosedBehindTheLastCommunicator) {
  open("newest", kMaskColl, nullptr);
  const std::string path = kFolder + "/libnccl-profiler-newest.so";
  void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(loaded, nullptr);
  dlclose(loaded);
  close();
  EXPECT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
