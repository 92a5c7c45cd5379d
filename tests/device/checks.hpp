// SPDX-License-Identifier: Apache-2.0
//
// What the checks of the assumptions share: a client of CUPTI's activity API, the fixture that says
// on which GPU they run, and how a check names its row of docs/assumptions.md and what it measured.
#pragma once

#include <cupti.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels.hpp"

#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call))
#define ASSERT_CUPTI(call) ASSERT_EQ(CUPTI_SUCCESS, (call))

namespace gpudiag::device {

/// Long enough for a check to look while the kernel runs, on a busy machine too.
inline constexpr std::uint64_t kLongNs = 400'000'000;
inline constexpr std::uint64_t kShortNs = 20'000;

/// True where the simulated GPU is to stand in, which GPUDIAG_DEVICE_CHECKS=simulated says.
bool simulated();

/// Why no check can run here: no GPU. Empty where one is.
std::string why_not();

/// Skips where there is no GPU. Each check runs in a process of its own, as CUPTI's state demands.
class Check : public ::testing::Test {
 protected:
  void SetUp() override;
  /// Ties the check to its row of docs/assumptions.md.
  static void row(int number) { RecordProperty("row", number); }
  /// What was seen, for the table of results.
  static void measured(const std::string& text) { RecordProperty("measured", text); }
};
using Buffers = Check;
using Records = Check;
using Graphs = Check;
using Callbacks = Check;
using Behaviour = Check;

/// CUPTI's one activity client of the process.
struct Client {
  std::mutex mutex;  // never held while CUPTI is called
  std::size_t buffer_bytes = 64 * 1024;
  std::vector<std::vector<std::uint8_t>> records;  // in the order of delivery
  std::vector<std::thread::id> requesters;
  std::vector<std::thread::id> completers;
  std::size_t completed_buffers = 0;

  template <class Record>
  std::vector<Record> of(CUpti_ActivityKind kind) {
    const std::lock_guard lock{mutex};
    std::vector<Record> found;
    for (const auto& bytes : records) {
      if (reinterpret_cast<const CUpti_Activity*>(bytes.data())->kind != kind) continue;
      Record record;
      std::copy_n(bytes.data(), sizeof record, reinterpret_cast<std::uint8_t*>(&record));
      found.push_back(record);
    }
    return found;
  }
  std::vector<CUpti_ActivityKernel9> kernels() {
    return of<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  /// Runtime or driver calls whose name begins so.
  std::vector<CUpti_ActivityAPI> calls(CUpti_CallbackDomain domain, const std::string& name);
};

Client& client();

/// Registers the client and enables the kinds; a failure fails the check that called.
void record(std::initializer_list<CUpti_ActivityKind> kinds, std::size_t buffer_bytes = 64 * 1024);

/// Waits for the device and takes delivery of everything.
void deliver();

/// The name of a function of either domain, without version suffix.
std::string function_name(CUpti_CallbackDomain domain, CUpti_CallbackId id);

std::int64_t now_ns(clockid_t clock);

}  // namespace gpudiag::device
