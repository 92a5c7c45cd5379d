// SPDX-License-Identifier: Apache-2.0
//
// What the stubs of cuDNN, NVRTC and cuSPARSE must answer in earnest: their versions, and texts
// for the errors that all else returns. Each library takes what it has an export for.
#include <cstddef>

#define SIMGPU_ANSWER extern "C" __attribute__((visibility("default")))

#if defined(SIMGPU_CUDNN)

SIMGPU_ANSWER std::size_t cudnnGetVersion();
SIMGPU_ANSWER std::size_t cudnnGetCudartVersion();
SIMGPU_ANSWER int cudnnGetProperty(int property, int* value);
SIMGPU_ANSWER const char* cudnnGetErrorString(int status);
SIMGPU_ANSWER void cudnnGetLastErrorString(char* message, std::size_t size);

// What PyTorch was built with: it refuses an older one.
constexpr int kVersion[] = {9, 24, 0};

std::size_t cudnnGetVersion() {
  return static_cast<std::size_t>(kVersion[0] * 10000 + kVersion[1] * 100 + kVersion[2]);
}
int cudnnGetProperty(int property, int* value) {
  if (property < 0 || property > 2 || value == nullptr) return 2000;  // CUDNN_STATUS_BAD_PARAM
  *value = kVersion[property];
  return 0;
}
std::size_t cudnnGetCudartVersion() {
  return 13000;
}
const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (message != nullptr && size != 0) *message = '\0';
}

#elif defined(SIMGPU_NVRTC)

SIMGPU_ANSWER int nvrtcVersion(int* major, int* minor);
SIMGPU_ANSWER const char* nvrtcGetErrorString(int status);

int nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return 3;  // NVRTC_ERROR_INVALID_INPUT
  *major = 13;
  *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int status) {
  return status == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}

#elif defined(SIMGPU_CUSPARSE)

SIMGPU_ANSWER const char* cusparseGetErrorString(int status);

const char* cusparseGetErrorString(int status) {
  return status == 0 ? "success" : "operation not supported";
}

#endif
