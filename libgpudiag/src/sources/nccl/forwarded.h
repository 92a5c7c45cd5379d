/* SPDX-License-Identifier: Apache-2.0
 *
 * What libgpudiag_inject.so hands to libgpudiag.so of NCCL's profiler events: one form for all versions
 * of NCCL's interface. Both are of one build, so the form may change with any version of ours.
 */
#ifndef GPUDIAG_SOURCES_NCCL_FORWARDED_H
#define GPUDIAG_SOURCES_NCCL_FORWARDED_H

#include <stddef.h>
#include <stdint.h>

/* Texts are NCCL's; NULL where there is none. They are read before the call returns. */
struct gpudiag_nccl_event {
  size_t size;           /* of this struct */
  uint64_t communicator; /* the same number on all its ranks */
  uint32_t ranks;
  uint32_t rank;
  uint32_t type;         /* kNcclEventGroup, kNcclEventColl, kNcclEventP2p */
  uint32_t channels;
  uint64_t sequence;
  uint64_t count;
  int32_t root;          /* of a transfer: the other rank */
  const char* function;
  const char* datatype;
  const char* algorithm;
  const char* protocol;
};

#endif
