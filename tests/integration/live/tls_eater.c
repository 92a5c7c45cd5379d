// SPDX-License-Identifier: Apache-2.0
// Loads libraries that take static thread-local storage until a process that runs has none left.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void eat(void) {
  const char *folder = getenv("TLS_HUNGRY_FOLDER");
  const char *report = getenv("TLS_HUNGRY_REPORT");
  if (folder == NULL || report == NULL) return;
  unsigned refused = 0;
  for (unsigned number = 10; number < 60; ++number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libtls_hungry_%u.so", folder, number);
    if (dlopen(path, RTLD_NOW) == NULL) ++refused;
  }
  FILE *file = fopen(report, "w");
  if (file == NULL) return;
  fprintf(file, "%u\n", refused);
  fclose(file);
}
