/* SPDX-License-Identifier: Apache-2.0
 *
 * What CUDA_INJECTION64_PATH names: writes a line into the file GPUDIAG_INJECTED each time the driver
 * calls it. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void) {
  const char* path = getenv("GPUDIAG_INJECTED");
  FILE* file = path != NULL ? fopen(path, "a") : NULL;
  if (file != NULL) {
    fputs("injected\n", file);
    fclose(file);
  }
  return 1;
}
