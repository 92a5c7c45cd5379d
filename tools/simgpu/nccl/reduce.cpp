// SPDX-License-Identifier: Apache-2.0
#include "nccl/reduce.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace simgpu::nccl {
namespace {

struct TypeTraits {
  std::size_t bytes;
  const char* letters;
};
constexpr std::array<TypeTraits, kDataTypes> kTypes = {{{1, "i8"},
                                                        {1, "u8"},
                                                        {4, "i32"},
                                                        {4, "u32"},
                                                        {8, "i64"},
                                                        {8, "u64"},
                                                        {2, "f16"},
                                                        {4, "f32"},
                                                        {8, "f64"},
                                                        {2, "bf16"},
                                                        {1, "f8e4m3"},
                                                        {1, "f8e5m2"}}};

bool known(DataType type) {
  return type >= 0 && type < kDataTypes;
}

// `Element` as stored, `Sum` as computed with. Sums of integers wrap, as on the device.
template <typename Element, typename Sum>
void reduce_as(const ReductionRule& rule, std::span<const std::byte* const> inputs, std::byte* out,
               std::size_t bytes) {
  const auto scaled = [&](Sum value) {
    if (rule.kind != kPreMulSum) return value;
    return static_cast<Sum>(static_cast<double>(value) * rule.factor);
  };
  for (std::size_t at = 0; at + sizeof(Element) <= bytes; at += sizeof(Element)) {
    Sum total{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      Element element;
      std::memcpy(static_cast<void*>(&element), inputs[rank] + at, sizeof element);
      const Sum value = scaled(static_cast<Sum>(element));
      if (rank == 0) {
        total = value;
      } else if (rule.kind == kProduct) {
        total = static_cast<Sum>(total * value);
      } else if (rule.kind == kMax) {
        total = std::max(total, value);
      } else if (rule.kind == kMin) {
        total = std::min(total, value);
      } else {
        total = static_cast<Sum>(total + value);
      }
    }
    if (rule.kind == kAverage) total = static_cast<Sum>(total / static_cast<Sum>(inputs.size()));
    const auto element = static_cast<Element>(total);
    std::memcpy(out + at, static_cast<const void*>(&element), sizeof element);
  }
}

}  // namespace

std::size_t element_bytes(DataType type) {
  return known(type) ? kTypes[static_cast<std::size_t>(type)].bytes : 0;
}

const char* type_letters(DataType type) {
  return known(type) ? kTypes[static_cast<std::size_t>(type)].letters : "u8";
}

double half_value(DataType type, const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  if (type == kBfloat16) return static_cast<float>(__nv_bfloat16(__nv_bfloat16_raw{bits}));
  return static_cast<float>(__half(__half_raw{bits}));
}

void reduce(DataType type, const ReductionRule& rule, std::span<const std::byte* const> inputs,
            std::byte* out, std::size_t bytes) {
  switch (type) {
    case kInt8:
      return reduce_as<std::int8_t, std::int32_t>(rule, inputs, out, bytes);
    case kUint8:
      return reduce_as<std::uint8_t, std::uint32_t>(rule, inputs, out, bytes);
    case kInt32:
    case kUint32:
      if (type == kUint32) return reduce_as<std::uint32_t, std::uint32_t>(rule, inputs, out, bytes);
      return reduce_as<std::int32_t, std::int64_t>(rule, inputs, out, bytes);
    case kInt64:
      return reduce_as<std::int64_t, std::int64_t>(rule, inputs, out, bytes);
    case kUint64:
      return reduce_as<std::uint64_t, std::uint64_t>(rule, inputs, out, bytes);
    case kFloat16:
      return reduce_as<__half, float>(rule, inputs, out, bytes);
    case kFloat32:
      return reduce_as<float, float>(rule, inputs, out, bytes);
    case kFloat64:
      return reduce_as<double, double>(rule, inputs, out, bytes);
    case kBfloat16:
      return reduce_as<__nv_bfloat16, float>(rule, inputs, out, bytes);
    case kFloat8e4m3:
      return reduce_as<__nv_fp8_e4m3, float>(rule, inputs, out, bytes);
    case kFloat8e5m2:
      return reduce_as<__nv_fp8_e5m2, float>(rule, inputs, out, bytes);
  }
}

}  // namespace simgpu::nccl
