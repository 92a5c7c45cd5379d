// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// CUPTI as a table of function pointers. The only file that names cupti.h; only this folder's .cpp
// files include it. Nothing is linked: which CUPTI a process has is known at run time.
#pragma once

#include <cupti.h>

#include <string>

namespace gpudiag {

/// Null where the CUPTI at hand has no such function. `optional` ones came after CUDA 12.0 or are
/// ones we can do without.
struct CuptiTable {
  // needed
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  // optional
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiGetVersion) version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiSetThreadIdType) set_thread_id_type = nullptr;
  decltype(&cuptiGetThreadIdType) get_thread_id_type = nullptr;
  decltype(&cuptiActivityGetAttribute) get_attribute = nullptr;
  decltype(&cuptiActivitySetAttribute) set_attribute = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_api = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_api = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiSubscribe_v2) subscribe_v2 = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;

  std::string path;                ///< where it was found, for people
  std::uint32_t api_version = 0;   ///< of cuptiGetVersion()

  bool complete() const {
    return register_callbacks != nullptr && enable != nullptr && disable != nullptr && flush_all != nullptr &&
           next_record != nullptr && timestamp != nullptr;
  }
};

/// Error codes that mean that somebody else holds the only subscriber: today's and that of CUDA 11.
inline bool means_taken(CUptiResult result) {
  return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || result == CUPTI_ERROR_MAX_LIMIT_REACHED;
}

}  // namespace gpudiag
