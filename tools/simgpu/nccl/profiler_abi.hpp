// SPDX-License-Identifier: Apache-2.0
//
// The interface between NCCL and a profiler plugin, versions 4 to 6: layouts that plugins were compiled
// with. Declared from NCCL's documentation of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu::nccl {

// Events; of 8 to 11 version 4 knows nothing, of 12 to 14 only version 6.
enum Event : std::uint64_t {
  kGroup = 1U << 0,
  kColl = 1U << 1,
  kP2p = 1U << 2,
  kProxyOp = 1U << 3,
  kProxyStep = 1U << 4,
  kProxyCtrl = 1U << 5,
  kKernelCh = 1U << 6,
  kNetPlugin = 1U << 7,
  kGroupApi = 1U << 8,
  kCollApi = 1U << 9,
  kP2pApi = 1U << 10,
  kKernelLaunch = 1U << 11
};

enum EventState : int { kGroupStartApiStop = 23, kGroupEndApiStart = 24 };

struct GroupApiEvent {
  bool captured;
  int depth;
};
struct CollApiEvent {
  const char* function;
  std::size_t count;
  const char* type;
  int root;
  void* stream;
  bool captured;
};
struct P2pApiEvent {
  const char* function;
  std::size_t count;
  const char* type;
  void* stream;
  bool captured;
};
struct KernelLaunchEvent {
  void* stream;
};
struct CollEvent {
  std::uint64_t number;  // of the function in the communicator
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* group;  // not in version 4
};
struct P2pEvent {
  const char* function;
  void* memory;
  const char* type;
  std::size_t count;
  int peer;
  std::uint8_t channels;
  void* group;  // not in version 4
};
// Members that a single host has no use for, which make the union as long as it is.
struct CopyEngineEvent {
  std::uint64_t number;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* type;
  const char* strategy;
  bool within_batch;
  std::uint32_t batch_size;
  std::uint32_t batches;
  std::uint32_t copy_number;
  void* stream;
};

struct EventDescription {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApiEvent group_api;
    CollApiEvent coll_api;
    P2pApiEvent p2p_api;
    KernelLaunchEvent kernel_launch;
    CollEvent coll;
    P2pEvent p2p;
    CopyEngineEvent copy_engine;
  };
};

struct EventDescription4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      std::uint64_t number;
      const char* function;
      const void* send;
      void* receive;
      std::size_t count;
      int root;
      const char* type;
      std::uint8_t channels;
      std::uint8_t warps;
      const char* algorithm;
      const char* protocol;
    } coll;
    struct {
      const char* function;
      void* memory;
      const char* type;
      std::size_t count;
      int peer;
      std::uint8_t channels;
    } p2p;
  };
};

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

// Versions 5 and 6; of the descriptions version 6 only adds those of copy engines.
struct Profiler {
  const char* name;
  int (*init)(void** context, std::uint64_t communicator, int* mask, const char* name, int nodes, int ranks, int rank,
              Logger log);
  int (*start_event)(void* context, void** handle, EventDescription* event);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};
struct Profiler4 {
  const char* name;
  int (*init)(void** context, int* mask, const char* name, std::uint64_t communicator, int nodes, int ranks, int rank,
              Logger log);
  int (*start_event)(void* context, void** handle, EventDescription4* event);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

}  // namespace simgpu::nccl
