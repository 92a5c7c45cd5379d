// SPDX-License-Identifier: Apache-2.0
//
// Programs built by nvcc, each in a process of its own, with the environment that a scenario needs:
// faults, injection, truth, the ways a process can end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace simgpu_test {
namespace {

struct Outcome {
  int status = -1;
  std::string output;  // stdout and stderr together
};

// `environment` is a list of NAME='value' as a shell reads it.
Outcome run(const std::string& environment, const std::string& arguments) {
  const std::string command = "LD_LIBRARY_PATH='" SIMGPU_FOLDER
                              "' SIMGPU_NOISE=0 "
                              "SIMGPU_COSTS='kernel step arg1=u64; kernel stuck ns=1000' " +
                              environment + " '" SIMGPU_PROGRAM "' " + arguments + " 2>&1";
  Outcome result;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0) result.output.append(buffer, got);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

class TruthFile {
 public:
  TruthFile() : path_(testing::TempDir() + "truth." + std::to_string(getpid()) + ".jsonl") {
    std::remove(path_.c_str());
  }
  ~TruthFile() { std::remove(path_.c_str()); }
  std::string setting() const { return "SIMGPU_TRUTH='" + path_ + "'"; }
  // Lines that match the expression.
  std::vector<std::string> lines(const std::string& expression) const {
    std::ifstream in(path_);
    std::vector<std::string> found;
    const std::regex pattern(expression);
    for (std::string line; std::getline(in, line);) {
      if (std::regex_search(line, pattern)) found.push_back(line);
    }
    return found;
  }

 private:
  std::string path_;
};

std::int64_t number(const std::string& line, const std::string& key) {
  std::smatch match;
  if (!std::regex_search(line, match, std::regex("\"" + key + "\":(-?[0-9]+)"))) return -1;
  return std::stoll(match[1]);
}

TEST(Program, BuiltByNvccRuns) {
  const Outcome done = run("", "train");
  EXPECT_EQ(done.output, "trained\n");
  EXPECT_EQ(done.status, 0);
}

TEST(Program, ReachesItsDeviceVariables) {
  EXPECT_EQ(run("", "symbols").output, "counter 17 managed 5\n");
}

TEST(Program, WithoutADeviceHearsSo) {
  const Outcome done = run("SIMGPU_DEVICES=0", "train");
  EXPECT_EQ(done.output, "cudaMalloc: cudaErrorNoDevice\n");
  EXPECT_EQ(done.status, 3);
}

TEST(Program, CountsItsDevicesEvenWhereThereAreNone) {
  EXPECT_EQ(run("SIMGPU_DEVICES=3", "count").output, "cudaSuccess 3\n");
  EXPECT_EQ(run("SIMGPU_DEVICES=0", "count").output, "cudaErrorNoDevice 0\n");
}

TEST(Program, SeesTheVisibleDevicesOnly) {
  EXPECT_EQ(run("SIMGPU_DEVICES=4 CUDA_VISIBLE_DEVICES=2,0", "count").output, "cudaSuccess 2\n");
  EXPECT_EQ(run("SIMGPU_DEVICES=4 CUDA_VISIBLE_DEVICES=1,9,0", "count").output, "cudaSuccess 1\n");
  EXPECT_EQ(run("SIMGPU_DEVICES=4 CUDA_VISIBLE_DEVICES=", "count").output, "cudaErrorNoDevice 0\n");
}

TEST(Program, MayForkAndTheChildIsTold) {
  const Outcome done = run("", "fork");
  EXPECT_EQ(done.output, "child 7\ntrained\n");
  EXPECT_EQ(done.status, 0);
}

TEST(Injection, HappensOnceBeforeTheFirstCall) {
  const Outcome done = run("CUDA_INJECTION64_PATH='" SIMGPU_INJECTED "'", "train");
  EXPECT_EQ(done.output, "injected devices 1\nfirst call cudaMalloc\ntrained\n");
  EXPECT_EQ(done.status, 0);
}

TEST(Injection, ALibraryThatIsMissingDoesNotStopTheProgram) {
  const Outcome done = run("CUDA_INJECTION64_PATH=/nonexistent/tool.so", "train");
  EXPECT_NE(done.output.find("trained\n"), std::string::npos);
  EXPECT_NE(done.output.find("simgpu: CUDA_INJECTION64_PATH='/nonexistent/tool.so'"),
            std::string::npos);
  EXPECT_EQ(done.status, 0);
}

TEST(Faults, TheNthCallFailsWithTheErrorGiven) {
  EXPECT_EQ(run("SIMGPU_FAULTS='cudaMalloc:nth=2,error=2'", "mallocs").output,
            "cudaSuccess\ncudaErrorMemoryAllocation\ncudaSuccess\ncudaSuccess\n");
  EXPECT_EQ(run("SIMGPU_FAULTS='cudaMalloc:after=1,times=2,error=999'", "mallocs").output,
            "cudaSuccess\ncudaErrorUnknown\ncudaErrorUnknown\ncudaSuccess\n");
}

TEST(Faults, AChanceIsTheSameForTheSameSeed) {
  const std::string setting = "SIMGPU_FAULTS='cudaMalloc:p=0.5,error=2' SIMGPU_SEED=";
  const std::string first = run(setting + "7", "mallocs").output;
  EXPECT_EQ(first, run(setting + "7", "mallocs").output);
  EXPECT_NE(first, run(setting + "8", "mallocs").output);
}

TEST(Faults, AKernelThatNeverEndsLetsTheProcessLeave) {
  TruthFile truth;
  const Outcome done =
      run(truth.setting() + " SIMGPU_FAULTS='kernel:never_ends,name=stuck'", "hang");
  EXPECT_EQ(done.output, "query cudaErrorNotReady\n");
  EXPECT_EQ(done.status, 5);
  EXPECT_EQ(truth.lines("\"type\":\"unfinished\".*stuck").size(), 1U);
  EXPECT_EQ(truth.lines("\"type\":\"fault\"").size(), 1U);
}

TEST(Faults, AKernelThatFailsBreaksItsDevice) {
  EXPECT_EQ(run("SIMGPU_FAULTS='kernel:error=700,name=stuck'", "sticky").output,
            "sync cudaErrorIllegalAddress\nthen cudaErrorIllegalAddress\n"
            "last cudaErrorIllegalAddress cudaErrorIllegalAddress\n");
}

TEST(Faults, ADriftingDeviceClockStretchesItsTimes) {
  EXPECT_EQ(run("", "events").output, "true\n");
  EXPECT_EQ(run("SIMGPU_FAULTS='clock:ppm=2000000'", "events").output, "stretched\n");
}

TEST(Truth, TellsOperationsWithTheirTimes) {
  TruthFile truth;
  ASSERT_EQ(run(truth.setting(), "train").status, 0);
  EXPECT_EQ(truth.lines("\"type\":\"process\",\"format\":\"simgpu.truth/1\"").size(), 1U);
  const auto kernels = truth.lines("\"kind\":\"kernel\".*step");
  ASSERT_EQ(kernels.size(), 3U);
  for (const std::string& kernel : kernels) {
    EXPECT_EQ(number(kernel, "end_ns") - number(kernel, "start_ns"), 200'000);
  }
  EXPECT_GE(number(kernels[1], "start_ns"), number(kernels[0], "end_ns"));
  EXPECT_EQ(truth.lines("\"kind\":\"memset\"").size(), 1U);
}

TEST(Truth, TellsWaitsAndWhatTheyWaitedFor) {
  TruthFile truth;
  ASSERT_EQ(run(truth.setting(), "train").status, 0);
  const auto waits = truth.lines("\"type\":\"wait\",\"function\":\"cudaDeviceSynchronize\"");
  ASSERT_EQ(waits.size(), 1U);
  const auto kernels = truth.lines("\"kind\":\"kernel\"");
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(number(waits[0], "for_operation"), number(kernels[2], "id"));
  EXPECT_GE(number(waits[0], "end_ns"), number(kernels[2], "end_ns"));
}

TEST(Truth, TellsCallsWithTheirTimes) {
  TruthFile truth;
  ASSERT_EQ(run(truth.setting(), "train").status, 0);
  const auto launches = truth.lines("\"type\":\"call\",\"function\":\"cudaLaunchKernel\"");
  const auto kernels = truth.lines("\"kind\":\"kernel\"");
  ASSERT_EQ(launches.size(), 3U);
  ASSERT_EQ(kernels.size(), 3U);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    EXPECT_EQ(number(launches[i], "correlation"), number(kernels[i], "correlation"));
    EXPECT_LE(number(launches[i], "start_ns"), number(kernels[i], "queued_ns"));
    EXPECT_GE(number(launches[i], "end_ns"), number(kernels[i], "queued_ns"));
    EXPECT_GE(number(kernels[i], "start_ns"), number(kernels[i], "earliest_ns"));
  }
  EXPECT_TRUE(truth.lines("\"type\":\"call\",\"function\":\"cudaGetLastError\"").empty());
}

TEST(Truth, TellsWhatNeedNotBeWaitedForAnyMore) {
  TruthFile truth;
  ASSERT_EQ(run(truth.setting(), "ended").status, 0);
  const auto record = truth.lines("\"kind\":\"event_record\"");
  ASSERT_EQ(record.size(), 1U);
  const auto waits = truth.lines("\"type\":\"wait\",\"function\":\"cudaEventSynchronize\"");
  const auto passes = truth.lines("\"type\":\"pass\",\"function\":\"cudaEventSynchronize\"");
  ASSERT_EQ(waits.size(), 1U);
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_EQ(number(waits[0], "for_operation"), number(record[0], "id"));
  EXPECT_EQ(number(passes[0], "for_operation"), number(record[0], "id"));
  const auto waiting = truth.lines("\"kind\":\"event_wait\"");
  ASSERT_EQ(waiting.size(), 1U);
  const std::string id = std::to_string(number(record[0], "id"));
  EXPECT_NE(waiting[0].find("\"follows\":[" + id + "]"), std::string::npos) << waiting[0];
}

TEST(Truth, TellsTheProgramsRanges) {
  TruthFile truth;
  const std::string nvtx = " NVTX_INJECTION64_PATH='" SIMGPU_FOLDER "/libsimgpu_nvtx.so'";
  ASSERT_EQ(run(truth.setting() + nvtx, "ended").status, 0);
  const auto inner = truth.lines("\"type\":\"range\".*\"name\":\"inner\"");
  const auto outer = truth.lines("\"type\":\"range\".*\"name\":\"outer\"");
  const auto waits = truth.lines("\"type\":\"wait\",\"function\":\"cudaEventSynchronize\"");
  ASSERT_EQ(inner.size(), 1U);
  ASSERT_EQ(outer.size(), 1U);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_LE(number(outer[0], "start_ns"), number(inner[0], "start_ns"));
  EXPECT_LE(number(inner[0], "start_ns"), number(waits[0], "start_ns"));
  EXPECT_GE(number(inner[0], "end_ns"), number(waits[0], "end_ns"));
  EXPECT_GE(number(inner[0], "blocked"), 1);  // the wait sleeps
}

TEST(Truth, HandsRangesOnToTheNextTool) {
  TruthFile truth;
  const std::string nvtx = " NVTX_INJECTION64_PATH='" SIMGPU_FOLDER
                           "/libsimgpu_nvtx.so' SIMGPU_NVTX_NEXT='" SIMGPU_INJECTED "'";
  const Outcome done = run(truth.setting() + nvtx, "ended");
  EXPECT_EQ(done.output, "range outer\nrange inner\n");
  EXPECT_EQ(truth.lines("\"type\":\"range\"").size(), 2U);
}

TEST(Truth, TellsDelaysPutIntoACall) {
  TruthFile truth;
  ASSERT_EQ(run(truth.setting() + " SIMGPU_FAULTS='cudaMalloc:delay_ns=2000000'", "train").status,
            0);
  const auto delays = truth.lines("\"type\":\"delay\",\"function\":\"cudaMalloc\"");
  ASSERT_EQ(delays.size(), 1U);
  EXPECT_GE(number(delays[0], "end_ns") - number(delays[0], "start_ns"), 2'000'000);
}

TEST(Truth, IsWrittenWhenTheProcessQuitsQuickly) {
  TruthFile truth;
  const Outcome done = run(truth.setting(), "quick_exit");
  EXPECT_EQ(done.status, 4);
  EXPECT_EQ(truth.lines("\"kind\":\"kernel\"").size(), 3U);
}

}  // namespace
}  // namespace simgpu_test
