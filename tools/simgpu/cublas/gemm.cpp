// SPDX-License-Identifier: Apache-2.0
#include "cublas/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <tuple>

#include "core/kernels.hpp"

namespace simgpu::cublas {
namespace {

constexpr double kLaunchNs = 1500.0;       // from the first to the last block's prologue
constexpr double kBytesPerNs = 2400.0;     // HBM
constexpr std::int64_t kMultiprocessors = 132;

// How fast a kind of product runs, what its kernels are called, which tiles they have.
struct Family {
  const char* name_format;  // of tile rows, tile columns, letters of the transpositions
  double flops_per_ns;
  unsigned threads;
  std::array<std::array<std::int64_t, 2>, 4> tiles;  // largest first
};

constexpr Family kHalf{"nvjet_sm90_tst_{}x{}_64x4_2x1_v_bz_{}", 700e3, 384,
                       {{{256, 128}, {128, 128}, {64, 128}, {64, 64}}}};
constexpr Family kEight{"nvjet_sm90_qqtst_{}x{}_128x4_2x1_v_bz_{}", 1400e3, 384,
                        {{{256, 128}, {128, 128}, {64, 128}, {64, 64}}}};
constexpr Family kTf32{"cutlass_80_tensorop_s1688gemm_{}x{}_16x4_{}_align4", 300e3, 256,
                       {{{256, 128}, {128, 128}, {128, 64}, {64, 64}}}};
constexpr Family kSingle{"cutlass_80_simt_sgemm_{}x{}_8x4_{}_align1", 50e3, 256,
                         {{{256, 128}, {128, 128}, {128, 64}, {64, 64}}}};
constexpr Family kDouble{"cutlass_80_tensorop_d884gemm_{}x{}_16x4_{}_align1", 50e3, 128,
                         {{{128, 128}, {128, 64}, {64, 64}, {32, 32}}}};

bool is_complex(cudaDataType_t type) {
  return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F || type == CUDA_C_16BF;
}

const Family& family(const Product& product) {
  switch (product.type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_C_16F:
    case CUDA_C_16BF:
      return kHalf;
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
    case CUDA_R_8I:
      return kEight;
    case CUDA_R_64F:
    case CUDA_C_64F:
      return kDouble;
    default:
      return product.tf32 ? kTf32 : kSingle;
  }
}

std::int64_t blocks_of(const Product& p, std::int64_t tile_m, std::int64_t tile_n) {
  return ((p.m + tile_m - 1) / tile_m) * ((p.n + tile_n - 1) / tile_n) * p.batch;
}

// The largest tile that still gives every multiprocessor something to do, else the smallest.
std::size_t choose_tile(const Product& product, const Family& kind) {
  for (std::size_t i = 0; i + 1 < kind.tiles.size(); ++i) {
    if (blocks_of(product, kind.tiles[i][0], kind.tiles[i][1]) >= kMultiprocessors) return i;
  }
  return kind.tiles.size() - 1;
}

Kernel* product_kernel(const Product& product, const Family& kind, std::size_t tile) {
  using Key = std::tuple<const Family*, std::size_t, bool, bool>;
  static auto* const kMutex = new std::shared_mutex;
  static auto* const kKnown = new std::map<Key, Kernel*>;
  const Key key{&kind, tile, product.trans_a != 0, product.trans_b != 0};
  {
    const std::shared_lock guard(*kMutex);
    if (const auto at = kKnown->find(key); at != kKnown->end()) return at->second;
  }
  const char letters[] = {product.trans_a != 0 ? 't' : 'n', product.trans_b != 0 ? 't' : 'n', 0};
  const auto [rows, columns] = kind.tiles[tile];
  const std::string name = fmt::format(fmt::runtime(kind.name_format), rows, columns, letters);
  const std::unique_lock guard(*kMutex);
  return kKnown->emplace(key, library_kernel(name)).first->second;
}

Status launch(Kernel* kernel, std::int64_t blocks, unsigned threads, double ns,
              cudaStream_t stream) {
  void* arguments[] = {&ns};
  const dim3 grid(static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, 1'000'000'000)));
  const cudaError_t error =
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, dim3(threads), arguments, 0,
                       stream);
  return error == cudaSuccess ? kSuccess : kExecutionFailed;
}

}  // namespace

std::size_t element_bytes(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 4;
  }
}

double product_ns(const Product& product, std::int64_t tile_m, std::int64_t tile_n) {
  const auto m = static_cast<double>(product.m);
  const auto n = static_cast<double>(product.n);
  const auto k = static_cast<double>(product.k);
  const auto batch = static_cast<double>(product.batch);
  const std::int64_t blocks = blocks_of(product, tile_m, tile_n);
  const std::int64_t waves = (blocks + kMultiprocessors - 1) / kMultiprocessors;
  // Every wave takes as long as a full one, and a tile as long as a full tile.
  const double flops = 2.0 * static_cast<double>(waves * kMultiprocessors * tile_m * tile_n) * k *
                       (is_complex(product.type) ? 4.0 : 1.0);
  const double bytes =
      batch * (m * k + k * n + m * n) * static_cast<double>(element_bytes(product.type));
  return kLaunchNs + std::max(flops / family(product).flops_per_ns, bytes / kBytesPerNs);
}

Status launch_product(const Product& product, cudaStream_t stream) {
  if (product.m < 0 || product.n < 0 || product.k < 0 || product.batch < 0) return kInvalidValue;
  if (product.m == 0 || product.n == 0 || product.batch == 0) return kSuccess;
  const Family& kind = family(product);
  const std::size_t tile = choose_tile(product, kind);
  const auto [tile_m, tile_n] = kind.tiles[tile];
  return launch(product_kernel(product, kind, tile), blocks_of(product, tile_m, tile_n),
                kind.threads, product_ns(product, tile_m, tile_n), stream);
}

Status launch_streaming(const char* name, double bytes, cudaStream_t stream) {
  constexpr double kBytesPerBlock = 16384.0;
  return launch(library_kernel(name), static_cast<std::int64_t>(bytes / kBytesPerBlock) + 1, 128,
                kLaunchNs + bytes / kBytesPerNs, stream);
}

}  // namespace simgpu::cublas
