// SPDX-License-Identifier: Apache-2.0
#include "nccl/nvtx_ranges.hpp"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace simgpu::nccl {
namespace {

// NCCL's numbers of its schemas.
constexpr std::uint64_t kFirst = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;
enum Schema : std::uint64_t {
  kInitRank = kFirst + 0,
  kAllGather = kFirst + 4,
  kAllReduce = kFirst + 5,
  kBroadcast = kFirst + 6,
  kReduceScatter = kFirst + 7,
  kReduce = kFirst + 8,
  kSend = kFirst + 9,
  kRecv = kFirst + 10,
  kSplit = kFirst + 13,
  kAlltoAll = kFirst + 16,
  kGather = kFirst + 17,
  kScatter = kFirst + 18
};

struct Sized {
  std::uint64_t communicator;
  std::uint64_t bytes;
};
struct SizedWithNumber {  // the root, the other rank, or the reduction
  std::uint64_t communicator;
  std::uint64_t bytes;
  std::int32_t number;
};
struct SizedReduce {
  std::uint64_t communicator;
  std::uint64_t bytes;
  std::int32_t root;
  std::int32_t reduction;
};
struct InitRank {
  std::uint64_t communicator;
  std::int32_t ranks;
  std::int32_t rank;
  std::int32_t device;
};
struct Split {
  std::uint64_t communicator;
  std::uint64_t parent;
  std::int32_t ranks;
  std::int32_t rank;
  std::int32_t device;
  std::int32_t color;
  std::int32_t key;
};

bool disabled() {
  const char* text = std::getenv("NCCL_NVTX_DISABLE");
  return text != nullptr && std::atoi(text) != 0;
}

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t kDomain = nvtxDomainCreateA("NCCL");
  return kDomain;
}

nvtxStringHandle_t registered(const char* function) {
  static auto* const kMutex = new std::mutex;
  static auto* const kStrings = new std::map<std::string, nvtxStringHandle_t>;
  const std::lock_guard guard(*kMutex);
  const auto [at, fresh] = kStrings->try_emplace(function, nullptr);
  if (fresh) at->second = nvtxDomainRegisterStringA(domain(), function);
  return at->second;
}

void push(const char* function, const nvtxPayloadData_t* payload) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = registered(function);
  if (payload != nullptr) {
    event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event.reserved0 = 1;
    event.payload.ullValue = reinterpret_cast<std::uintptr_t>(payload);
  }
  nvtxDomainRangePushEx(domain(), &event);
}

Schema schema_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::all_reduce: return kAllReduce;
    case TaskKind::all_gather: return kAllGather;
    case TaskKind::reduce_scatter: return kReduceScatter;
    case TaskKind::broadcast: return kBroadcast;
    case TaskKind::reduce: return kReduce;
    case TaskKind::all_to_all: return kAlltoAll;
    case TaskKind::gather: return kGather;
    case TaskKind::scatter: return kScatter;
    case TaskKind::send: return kSend;
    default: return kRecv;
  }
}

template <typename Payload>
void push_with(const char* function, TaskKind kind, const Payload& payload) {
  const nvtxPayloadData_t data{schema_of(kind), sizeof payload, &payload};
  push(function, &data);
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

}  // namespace

NvtxRange::NvtxRange(const char* function) {
  if (disabled()) return;
  pushed_ = true;
  push(function, nullptr);
}

NvtxRange::NvtxRange(const char* function, const Communicator* communicator, TaskKind kind, std::size_t count,
                     DataType type, int peer, int reduction) {
  if (disabled()) return;
  pushed_ = true;
  const std::uint64_t number = Communicator::valid(communicator) ? communicator->number() : 0;
  const std::uint64_t bytes = count * element_bytes(type);
  switch (kind) {
    case TaskKind::all_gather:
    case TaskKind::all_to_all: push_with(function, kind, Sized{number, bytes}); break;
    case TaskKind::all_reduce:
    case TaskKind::reduce_scatter: push_with(function, kind, SizedWithNumber{number, bytes, reduction}); break;
    case TaskKind::reduce: push_with(function, kind, SizedReduce{number, bytes, peer, reduction}); break;
    default: push_with(function, kind, SizedWithNumber{number, bytes, peer});
  }
}

void NvtxRange::made(const Communicator& communicator) {
  const InitRank payload{communicator.number(), static_cast<int>(communicator.ranks()),
                         static_cast<int>(communicator.rank()), current_device()};
  schema_ = kInitRank;
  bytes_ = sizeof payload;
  std::memcpy(payload_, &payload, sizeof payload);
}

void NvtxRange::split_off(const Communicator& communicator, const Communicator& parent, int color, int key) {
  const Split payload{communicator.number(),
                      parent.number(),
                      static_cast<int>(communicator.ranks()),
                      static_cast<int>(communicator.rank()),
                      current_device(),
                      color,
                      key};
  schema_ = kSplit;
  bytes_ = sizeof payload;
  std::memcpy(payload_, &payload, sizeof payload);
}

NvtxRange::~NvtxRange() {
  if (!pushed_) return;
  if (bytes_ == 0) {
    nvtxDomainRangePop(domain());
    return;
  }
  const nvtxPayloadData_t data{schema_, bytes_, payload_};
  nvtxRangePopPayload(domain(), &data, 1);
}

}  // namespace simgpu::nccl
