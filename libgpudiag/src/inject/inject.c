/* SPDX-License-Identifier: Apache-2.0
 *
 * libgpudiag_inject.so: how libgpudiag.so gets into a job that was not built for it. Plain C on libc
 * alone, because a preload reaches every child of the job: a shell or a compiler pays for one small
 * object and a constructor that looks at two variables.
 *
 * The driver loads the library named by CUDA_INJECTION64_PATH and calls InitializeInjection when CUDA
 * initialises in a process; NVTX does so with NVTX_INJECTION64_PATH at its first call. Both lead here,
 * and only then is libgpudiag.so loaded, from beside this file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc 2.34 moved these into libc under a new version; under the old one, a library built here
   still loads where glibc is older (there they come from libdl.so.2, which we name as needed). */
#if defined(__x86_64__)
#define GPUDIAG_OLD_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GPUDIAG_OLD_VERSION "GLIBC_2.17"
#endif
#ifdef GPUDIAG_OLD_VERSION
__asm__(".symver dlopen,dlopen@" GPUDIAG_OLD_VERSION);
__asm__(".symver dlsym,dlsym@" GPUDIAG_OLD_VERSION);
__asm__(".symver dladdr,dladdr@" GPUDIAG_OLD_VERSION);
__asm__(".symver dlerror,dlerror@" GPUDIAG_OLD_VERSION);
#endif

#define GPUDIAG_EXPORT __attribute__((visibility("default")))

static const char kCudaVariable[] = "CUDA_INJECTION64_PATH";
static const char kNvtxVariable[] = "NVTX_INJECTION64_PATH";

/* The absolute path of this file; 0 where it cannot be told. `path` holds PATH_MAX bytes. */
static int own_path(char* path) {
  Dl_info info;
  if (dladdr((const void*)kCudaVariable, &info) == 0 || info.dli_fname == NULL) return 0;
  return realpath(info.dli_fname, path) != NULL;
}

static int is_set(const char* value) { return value != NULL && value[0] != '\0'; }

/* setenv() is not safe beside threads that read the environment. */
static int has_one_thread(void) {
  char text[1024];
  const char* field;
  int skipped;
  ssize_t size;
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = '\0';
  /* The name in parentheses may hold anything; the number of threads is the 18th field after it. */
  field = strrchr(text, ')');
  for (skipped = 0; field != NULL && skipped < 18; ++skipped) field = strchr(field + 1, ' ');
  return field != NULL && field[1] == '1' && field[2] == ' ';
}

/* Names this library to the driver and to NVTX, for this process, where the user names no other. A
   preload runs this before main(); loaded by the driver later, it may come beside other threads. */
__attribute__((constructor)) static void announce(void) {
  const int cuda_set = is_set(getenv(kCudaVariable));
  const int nvtx_set = is_set(getenv(kNvtxVariable));
  char path[PATH_MAX];
  if (cuda_set && nvtx_set) return;
  if (!has_one_thread() || !own_path(path)) return;
  if (!cuda_set) setenv(kCudaVariable, path, 1);
  if (!nvtx_set) setenv(kNvtxVariable, path, 1);
}

/* One line, once. */
static void* fail(const char* what, const char* detail) {
  static int said = 0;
  char line[PATH_MAX + 512];
  int size;
  if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) return NULL;
  size = snprintf(line, sizeof line, "gpudiag cannot start: %s%s%s\n", what, detail != NULL ? ": " : "",
                  detail != NULL ? detail : "");
  if (size < 0) return NULL;
  if ((size_t)size >= sizeof line) size = (int)sizeof line - 1;
  if (write(STDERR_FILENO, line, (size_t)size) < 0) return NULL; /* nobody is left to tell */
  return NULL;
}

/* `name` of the libgpudiag.so beside this file. It is never closed. */
static void* library_function(const char* name) {
  static const char kLibrary[] = "libgpudiag.so.0";
  char path[PATH_MAX + sizeof kLibrary];
  char* slash;
  void* library;
  void* function;
  if (!own_path(path)) return fail("its own path is not known", NULL);
  slash = strrchr(path, '/');
  memcpy(slash + 1, kLibrary, sizeof kLibrary);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail("libgpudiag cannot be loaded", dlerror());
  function = dlsym(library, name);
  if (function == NULL) return fail("this libgpudiag is of another version", dlerror());
  return function;
}

typedef const void* (*NvtxExportTable)(uint32_t table);

GPUDIAG_EXPORT int InitializeInjection(void);
GPUDIAG_EXPORT int InitializeInjectionNvtx2(NvtxExportTable get_export_table);

/* Called by the driver. Its answer only says whether we are there; the job goes on either way. */
int InitializeInjection(void) {
  void* function = library_function("gpudiag_inject_cuda");
  int (*start)(void);
  if (function == NULL) return 0;
  memcpy(&start, &function, sizeof start);
  return start();
}

/* Called by each copy of NVTX in the process, at its first call. */
int InitializeInjectionNvtx2(NvtxExportTable get_export_table) {
  void* function = library_function("gpudiag_inject_nvtx");
  int (*attach)(NvtxExportTable);
  if (function == NULL) return 0;
  memcpy(&attach, &function, sizeof attach);
  return attach(get_export_table);
}
