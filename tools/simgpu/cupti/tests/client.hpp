// SPDX-License-Identifier: Apache-2.0
//
// A client of the activity API as a test needs it: buffers of a size it chooses, and every record
// that came back, in order.
#pragma once

#include <cupti.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace simgpu::testing {

/// What the one client of the process has seen. Reset by start().
struct Client {
  std::mutex mutex;
  std::size_t buffer_bytes = 65'536;
  std::size_t max_records = 0;
  bool declines = false;  // answers requests with no buffer
  std::size_t requests = 0;
  std::vector<std::thread::id> request_threads;
  std::vector<std::thread::id> completed_threads;
  std::vector<std::size_t> valid_sizes;
  std::vector<std::vector<std::uint8_t>> records;
  CUptiResult last_walk = CUPTI_SUCCESS;  // how the last buffer's walk ended

  /// All records of a kind, as its struct.
  template <class Record>
  std::vector<Record> of(CUpti_ActivityKind kind) {
    const std::lock_guard lock(mutex);
    std::vector<Record> found;
    for (const auto& bytes : records) {
      Record record;
      if (reinterpret_cast<const CUpti_Activity*>(bytes.data())->kind == kind) {
        std::copy_n(bytes.data(), sizeof record, reinterpret_cast<std::uint8_t*>(&record));
        found.push_back(record);
      }
    }
    return found;
  }
  /// Kinds in the order of delivery.
  std::vector<int> kinds();
};

Client& client();

/// Registers the client's callbacks with buffers of `buffer_bytes`.
void start(std::size_t buffer_bytes = 65'536, std::size_t max_records = 0);

/// The CONCURRENT_KERNEL records that came back.
std::vector<CUpti_ActivityKernel10> kernels();

}  // namespace simgpu::testing
