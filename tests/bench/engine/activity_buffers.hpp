// SPDX-License-Identifier: Apache-2.0
// Records turned back into what CUPTI would have handed out: genuine CUpti_Activity structs in
// buffers, for the decoder to decode again.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/names.hpp"
#include "record/record.hpp"
#include "sources/cupti/buffer_pool.hpp"
#include "sources/cupti/cupti_abi.hpp"

namespace gpudiag::bench {

/// The functions of CUPTI that decoding calls, over buffers made here.
CuptiTable activity_table();

class ActivityBuffers {
 public:
  explicit ActivityBuffers(const NameTable& names) : names_{names} {}

  /// Calls, kernels, copies and waits of `records` as activities; the rest is left out.
  void fill(const std::vector<Record>& records);
  std::vector<BufferPool::Filled> buffers();
  std::size_t activities() const { return activities_; }

 private:
  template <typename Activity>
  void append(const Activity& activity);
  void add_kernel(const Record& record);
  void add_copy(const Record& record);
  void add_call(const Record& record);
  void add_wait(const Record& record);
  const char* symbol(NameId name);

  const NameTable& names_;
  std::unordered_map<std::uint32_t, std::string> symbols_;
  std::vector<std::vector<std::uint8_t>> filled_;
  std::size_t used_ = 0;  ///< of `filled_`, whose memory is used again
  std::size_t activities_ = 0;
};

}  // namespace gpudiag::bench
