/* SPDX-License-Identifier: Apache-2.0
 *
 * As much as we use of the interface between NCCL and a profiler plugin, versions 4 (NCCL 2.26), 5
 * (2.28) and 6 (2.29): declared here from NCCL's documentation of it, since CUDA has no header for it.
 * Plain C: libgpudiag_inject.so has nothing else.
 *
 * NCCL looks for `ncclProfiler_v6`, then `_v5`, and so on down, and uses the first it finds.
 */
#ifndef GPUDIAG_SOURCES_NCCL_PROFILER_ABI_H
#define GPUDIAG_SOURCES_NCCL_PROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Bits of the mask of events, and what `type` of an event is. */
enum {
  kNcclEventGroup = 1 << 0, /* operations that share a kernel; comes right after its launch */
  kNcclEventColl = 1 << 1,
  kNcclEventP2p = 1 << 2
};

/* The part of a collective's and of a transfer's description that all three versions share. */
struct NcclCollEvent {
  uint64_t sequence; /* of this function in the communicator */
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct NcclP2pEvent {
  const char* function;
  void* memory;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
};

/* Version 4; versions 5 and 6 have a wider `type` and longer members of the union. */
struct NcclEvent4 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct NcclCollEvent coll;
    struct NcclP2pEvent p2p;
  } of;
};
struct NcclEvent5 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct NcclCollEvent coll;
    struct NcclP2pEvent p2p;
  } of;
};

typedef void (*NcclLogger)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

struct NcclProfiler4 {
  const char* name;
  int (*init)(void** context, int* mask, const char* name, uint64_t communicator, int nodes, int ranks, int rank,
              NcclLogger log);
  int (*start_event)(void* context, void** handle, struct NcclEvent4* event);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};
struct NcclProfiler5 {
  const char* name;
  int (*init)(void** context, uint64_t communicator, int* mask, const char* name, int nodes, int ranks, int rank,
              NcclLogger log);
  int (*start_event)(void* context, void** handle, struct NcclEvent5* event);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

#endif
