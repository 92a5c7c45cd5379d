// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace simgpu::testing {
namespace {

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  Client& c = client();
  const std::lock_guard lock(c.mutex);
  ++c.requests;
  c.request_threads.push_back(std::this_thread::get_id());
  *buffer = c.declines ? nullptr : static_cast<std::uint8_t*>(std::malloc(c.buffer_bytes));
  *size = c.buffer_bytes;
  *max_records = c.max_records;
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  Client& c = client();
  const std::lock_guard lock(c.mutex);
  c.completed_threads.push_back(std::this_thread::get_id());
  c.valid_sizes.push_back(valid);
  CUpti_Activity* record = nullptr;
  while ((c.last_walk = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(record);
    // The largest record's length, or what is left: enough for the struct of any kind.
    const std::size_t left = valid - static_cast<std::size_t>(bytes - buffer);
    c.records.emplace_back(bytes, bytes + std::min(left, sizeof(CUpti_ActivityKernel10)));
  }
  std::free(buffer);
}

}  // namespace

std::vector<int> Client::kinds() {
  const std::lock_guard lock(mutex);
  std::vector<int> all;
  for (const auto& bytes : records) {
    all.push_back(reinterpret_cast<const CUpti_Activity*>(bytes.data())->kind);
  }
  return all;
}

Client& client() {
  static auto* const instance = new Client;
  return *instance;
}

void start(std::size_t buffer_bytes, std::size_t max_records) {
  client().buffer_bytes = buffer_bytes;
  client().max_records = max_records;
  ASSERT_EQ(cuptiActivityRegisterCallbacks(request, completed), CUPTI_SUCCESS);
}

std::vector<CUpti_ActivityKernel10> kernels() {
  return client().of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

}  // namespace simgpu::testing
