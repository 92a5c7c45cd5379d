// SPDX-License-Identifier: Apache-2.0
//
// Errors: their names and texts, and the last one of the thread.
#include "runtime/entry.hpp"

#include "core/error_names.hpp"

extern "C" {
SIMGPU_EXPORT const char* simgpu_error_name(cudaError_t error) __asm__("cudaGetErrorName");
SIMGPU_EXPORT const char* simgpu_error_string(cudaError_t error) __asm__("cudaGetErrorString");
SIMGPU_EXPORT cudaChannelFormatDesc simgpu_channel(
    int x, int y, int z, int w, cudaChannelFormatKind f) __asm__("cudaCreateChannelDesc");
SIMGPU_EXPORT cudaError_t simgpu_export_table(const void** table,
                                              const cudaUUID_t* id) __asm__("cudaGetExportTable");
}

// Undocumented tables; what needs them cannot run here and must hear so.
cudaError_t simgpu_export_table(const void** table, const cudaUUID_t*) {
  if (table != nullptr) *table = nullptr;
  return cudaErrorNotSupported;
}

const char* simgpu_error_name(cudaError_t error) {
  const ErrorText* text = find_error_text(static_cast<int>(error));
  return text == nullptr ? "unrecognized error code" : text->runtime_name;
}

const char* simgpu_error_string(cudaError_t error) {
  const ErrorText* text = find_error_text(static_cast<int>(error));
  return text == nullptr ? "unrecognized error code" : text->description;
}

cudaChannelFormatDesc simgpu_channel(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return cudaChannelFormatDesc{x, y, z, w, f};
}

namespace {

// A broken device shows itself in every call.
int device_error() {
  const ThreadState& thread = thread_state();
  if (thread.contexts.empty()) return 0;
  const Lock guard = Engine::get().lock();
  return thread.contexts.back()->device->sticky_error;
}

}  // namespace

SIMGPU_RUNTIME_VOID(cudaGetLastError) {
  const int sticky = device_error();
  const int error = std::exchange(thread_state().last_error, 0);
  return as_error(sticky != 0 ? sticky : error);
}

SIMGPU_RUNTIME_VOID(cudaPeekAtLastError) {
  const int sticky = device_error();
  return as_error(sticky != 0 ? sticky : thread_state().last_error);
}
