// SPDX-License-Identifier: Apache-2.0
#include "external_correlation.hpp"

#include <vector>

#include "library.hpp"

namespace simgpu::cupti {
namespace {

struct Stacks {
  std::vector<std::uint64_t> ids[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
  std::size_t pushed = 0;  // over all kinds
};

// A pointer: it costs no look-up of a destructor, and threads that never push pay for no vector.
// A thread's stacks are few bytes and stay when it ends, as its ids may be popped by later
// thread-exit handlers.
thread_local Stacks* t_stacks = nullptr;

}  // namespace

void push_external_id(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  if (t_stacks == nullptr) {
    t_stacks = new Stacks;
  }
  t_stacks->ids[kind].push_back(id);
  ++t_stacks->pushed;
}

bool pop_external_id(CUpti_ExternalCorrelationKind kind, std::uint64_t& id) {
  if (t_stacks == nullptr || t_stacks->ids[kind].empty()) {
    return false;
  }
  id = t_stacks->ids[kind].back();
  t_stacks->ids[kind].pop_back();
  --t_stacks->pushed;
  return true;
}

void record_external_ids(std::uint32_t correlation_id) {
  if (t_stacks == nullptr || t_stacks->pushed == 0) {
    return;
  }
  Library& lib = library();
  if (!lib.kinds.enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 0)) {
    return;
  }
  for (int kind = 1; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; ++kind) {
    const auto& ids = t_stacks->ids[kind];
    if (!ids.empty()) {
      CUpti_ActivityExternalCorrelation record{};
      record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
      record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
      record.externalId = ids.back();
      record.correlationId = correlation_id;
      lib.store.append(record, nullptr);
    }
  }
}

}  // namespace simgpu::cupti
