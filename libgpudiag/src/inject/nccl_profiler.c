/* SPDX-License-Identifier: Apache-2.0
 *
 * libgpudiag_inject.so as NCCL's profiler plugin (NCCL_PROFILER_PLUGIN). We ask for the events of
 * collectives and transfers alone, which NCCL makes on the thread that has just launched their kernel;
 * no event costs anything on the device, and none gets a handle, so that NCCL ends and updates none.
 *
 * Nothing here fails: whatever is wrong, NCCL is told that no events are wanted.
 */
#include <stdlib.h>
#include <string.h>

#include "inject/library_function.h"
#include "sources/nccl/forwarded.h"
#include "sources/nccl/profiler_abi.h"

#define GPUDIAG_EXPORT __attribute__((visibility("default")))

enum { kNcclSuccess = 0 };

/* Never freed: events may come after the communicator's end, and a communicator costs NCCL megabytes. */
struct Communicator {
  uint64_t id;
  uint32_t ranks;
  uint32_t rank;
};

typedef void (*Forward)(const struct gpudiag_nccl_event* event);

/* Written once before the first event; the same value each time. */
static Forward forward;

/* The mask that libgpudiag wants; 0 where it does not run. */
static int wanted_events(void) {
  int (*wanted)(void);
  void* function = library_function("gpudiag_inject_nccl_wanted");
  void* event = library_function("gpudiag_inject_nccl_event");
  Forward found;
  if (function == NULL || event == NULL) return 0;
  memcpy(&wanted, &function, sizeof wanted);
  memcpy(&found, &event, sizeof found);
  __atomic_store_n(&forward, found, __ATOMIC_RELEASE);
  return wanted();
}

static int open_communicator(void** context, int* mask, uint64_t id, int ranks, int rank) {
  struct Communicator* communicator;
  if (context == NULL || mask == NULL) return kNcclSuccess;
  *context = NULL;
  *mask = 0;
  communicator = malloc(sizeof *communicator);
  if (communicator == NULL) return kNcclSuccess;
  communicator->id = id;
  communicator->ranks = (uint32_t)ranks;
  communicator->rank = (uint32_t)rank;
  *context = communicator;
  *mask = wanted_events();
  return kNcclSuccess;
}

/* [hot] */
static void pass_on(const struct Communicator* communicator, uint64_t type, const struct NcclCollEvent* coll,
                    const struct NcclP2pEvent* p2p) {
  struct gpudiag_nccl_event event;
  const Forward to = __atomic_load_n(&forward, __ATOMIC_ACQUIRE);
  if (communicator == NULL || to == NULL) return;
  memset(&event, 0, sizeof event);
  event.size = sizeof event;
  event.communicator = communicator->id;
  event.ranks = communicator->ranks;
  event.rank = communicator->rank;
  event.type = (uint32_t)type;
  if (type == kNcclEventColl) {
    event.channels = coll->channels;
    event.sequence = coll->sequence;
    event.count = coll->count;
    event.root = coll->root;
    event.function = coll->function;
    event.datatype = coll->datatype;
    event.algorithm = coll->algorithm;
    event.protocol = coll->protocol;
  } else if (type == kNcclEventP2p) {
    event.channels = p2p->channels;
    event.count = p2p->count;
    event.root = p2p->peer;
    event.function = p2p->function;
    event.datatype = p2p->datatype;
  } else if (type != kNcclEventGroup) {
    return; /* NCCL tells of calls too, asked or not */
  }
  to(&event);
}

static int init_v4(void** context, int* mask, const char* name, uint64_t communicator, int nodes, int ranks, int rank,
                   NcclLogger log) {
  (void)name, (void)nodes, (void)log;
  return open_communicator(context, mask, communicator, ranks, rank);
}
static int init_v5(void** context, uint64_t communicator, int* mask, const char* name, int nodes, int ranks, int rank,
                   NcclLogger log) {
  (void)name, (void)nodes, (void)log;
  return open_communicator(context, mask, communicator, ranks, rank);
}
static int start_v4(void* context, void** handle, struct NcclEvent4* event) {
  if (handle != NULL) *handle = NULL;
  if (event != NULL) pass_on(context, event->type, &event->of.coll, &event->of.p2p);
  return kNcclSuccess;
}
static int start_v5(void* context, void** handle, struct NcclEvent5* event) {
  if (handle != NULL) *handle = NULL;
  if (event != NULL) pass_on(context, event->type, &event->of.coll, &event->of.p2p);
  return kNcclSuccess;
}
static int stop(void* handle) {
  (void)handle;
  return kNcclSuccess;
}
static int record_state(void* handle, int state, void* arguments) {
  (void)handle, (void)state, (void)arguments;
  return kNcclSuccess;
}
static int finalize(void* context) {
  (void)context;
  return kNcclSuccess;
}

/* The names are NCCL's. */
GPUDIAG_EXPORT struct NcclProfiler4 ncclProfiler_v4 = {"gpudiag", init_v4, start_v4, stop, record_state, finalize};
GPUDIAG_EXPORT struct NcclProfiler5 ncclProfiler_v5 = {"gpudiag", init_v5, start_v5, stop, record_state, finalize};
GPUDIAG_EXPORT struct NcclProfiler5 ncclProfiler_v6 = {"gpudiag", init_v5, start_v5, stop, record_state, finalize};
