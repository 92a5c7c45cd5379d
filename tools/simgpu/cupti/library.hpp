// SPDX-License-Identifier: Apache-2.0
//
// The state of the simulated CUPTI: one object per process, made when a client first uses the
// library and never destroyed, so that nothing can be called after its end.
//
//   core → listener.cpp → Library{kinds, clock, store, subscriber} → worker → client
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>

#include "activity_store.hpp"
#include "clock.hpp"
#include "kind_table.hpp"
#include "record_faults.hpp"
#include "subscriber.hpp"
#include "worker.hpp"

namespace simgpu::cupti {

/// Switches of the activity API that are one value each. relaxed: independent of each other.
struct Settings {
  void reset();

  std::atomic<std::uint32_t> thread_id_type{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};
  std::atomic<bool> latency_timestamps{false};
  std::atomic<bool> all_sync_records{true};
  std::atomic<bool> event_timestamps{false};
};

struct Library {
  Library();

  RecordFaults faults;
  KindTable kinds;
  Clock clock;
  ActivityStore store{faults};
  Worker worker{store, clock, kinds, faults};
  Subscriber subscriber;
  Settings settings;
  std::uint32_t process_id;

  /// Tells the core which notices are wanted now; call it after every change of what is enabled.
  void update_wanted();

 private:
  bool update_wanted_calls(ApiDomain domain, CUpti_CallbackDomain callbacks);
};

/// The library's state, made on first use. [any thread]
Library& library();

/// True in a child that was forked from a user of this library: there are no threads and no
/// device there, and nothing may wait for them.
bool is_inert() noexcept;

/// Connects to the core and follows forks. Called once, by library().
void attach_to_core();

/// The id of the calling thread in records, by the type that cuptiSetThreadIdType chose. [hot]
std::uint32_t thread_id_for_records();

}  // namespace simgpu::cupti
