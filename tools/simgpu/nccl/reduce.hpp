// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of collectives, on the small part of the data that really moves.
#pragma once

#include <cstddef>
#include <span>

#include "nccl/abi.hpp"

namespace simgpu::nccl {

struct ReductionRule {
  Reduction kind = kSum;
  double factor = 1.0;  // of kPreMulSum: applied to every input
};

// Bytes of an element; 0 for a type that NCCL does not have.
std::size_t element_bytes(DataType type);
// As NCCL's kernels spell it: "f32", "bf16" …
const char* type_letters(DataType type);
// The value of a kFloat16 or kBfloat16.
double half_value(DataType type, const std::byte* at);

// out[i] = rule over inputs[r][i], i below `bytes` / element size. `out` may be one of the inputs.
void reduce(DataType type, const ReductionRule& rule, std::span<const std::byte* const> inputs,
            std::byte* out, std::size_t bytes);

}  // namespace simgpu::nccl
