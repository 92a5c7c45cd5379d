/* SPDX-License-Identifier: Apache-2.0
 *
 * libgpudiag_inject.so: how libgpudiag.so gets into a job that was not built for it. Plain C on libc
 * alone, because a preload reaches every child of the job: a shell or a compiler pays for one small
 * object and a constructor that looks at two variables.
 *
 * The driver loads the library named by CUDA_INJECTION64_PATH and calls InitializeInjection when CUDA
 * initialises in a process; NVTX does so with NVTX_INJECTION64_PATH at its first call. Both lead here,
 * as NCCL does by nccl_profiler.c, and only then is libgpudiag.so loaded, from beside this file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inject/library_function.h"

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
static const char kNcclVariable[] = "NCCL_PROFILER_PLUGIN";

/* Found when this file is loaded, and static: the thread that needs them later may have a stack of a few
   kilobytes. Empty where the path cannot be told. */
static const char kLibrary[] = "libgpudiag.so.0";
static char own_path[PATH_MAX];
static char library_path[PATH_MAX + sizeof kLibrary];

static void find_paths(void) {
  Dl_info info;
  const char* slash;
  size_t folder;
  if (dladdr((const void*)kCudaVariable, &info) == 0 || info.dli_fname == NULL) return;
  if (realpath(info.dli_fname, own_path) == NULL || (slash = strrchr(own_path, '/')) == NULL) {
    own_path[0] = '\0';
    return;
  }
  folder = (size_t)(slash - own_path) + 1;
  memcpy(library_path, own_path, folder);
  memcpy(library_path + folder, kLibrary, sizeof kLibrary);
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

/* Names this library to the driver, to NVTX and, on request, to NCCL, for this process, where the user names no other. A
   preload runs this before main(); loaded by the driver later, it may come beside other threads. */
__attribute__((constructor)) static void announce(void) {
  const int cuda_set = is_set(getenv(kCudaVariable));
  const int nvtx_set = is_set(getenv(kNvtxVariable));
  const char* nccl = getenv("GPUDIAG_NCCL");
  const int nccl_set = is_set(getenv(kNcclVariable)) || nccl == NULL || strcmp(nccl, "on") != 0;
  find_paths();
  if (cuda_set && nvtx_set && nccl_set) return;
  if (!has_one_thread() || !is_set(own_path)) return;
  if (!cuda_set) setenv(kCudaVariable, own_path, 1);
  if (!nvtx_set) setenv(kNvtxVariable, own_path, 1);
  if (!nccl_set) setenv(kNcclVariable, own_path, 1);
}

/* write() to stderr, where a full pipe must not hold up the job, nor a closed one end it: its SIGPIPE
   is taken back. sigprocmask() is the calling thread's on Linux; pthread_sigmask() is of newer versions of libc. */
static void say(const char* line, size_t size) {
  sigset_t pipe_signal;
  sigset_t pending;
  sigset_t before;
  const struct timespec at_once = {0, 0};
  struct pollfd ready = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&ready, 1, 100) == 0) return;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  sigprocmask(SIG_BLOCK, &pipe_signal, &before);
  if (write(STDERR_FILENO, line, size) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
    sigtimedwait(&pipe_signal, NULL, &at_once);
  sigprocmask(SIG_SETMASK, &before, NULL);
}

/* One line, once. */
static void* fail(const char* what, const char* detail) {
  static int said = 0;
  static char line[PATH_MAX + 512];
  int size;
  if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) return NULL;
  size = snprintf(line, sizeof line, "gpudiag cannot start: %s%s%s\n", what, detail != NULL ? ": " : "",
                  detail != NULL ? detail : "");
  if (size < 0) return NULL;
  if ((size_t)size >= sizeof line) size = (int)sizeof line - 1;
  say(line, (size_t)size);
  return NULL;
}

void* library_function(const char* name) {
  void* library;
  void* function;
  if (!is_set(library_path)) return fail("its own path is not known", NULL);
  library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail("libgpudiag cannot be loaded", dlerror());
  function = dlsym(library, name);
  if (function == NULL) return fail("this libgpudiag is of another version", dlerror());
  return function;
}

typedef const void* (*NvtxExportTable)(uint32_t table);

GPUDIAG_EXPORT int InitializeInjection(void);
GPUDIAG_EXPORT int InitializeInjectionNvtx2(NvtxExportTable get_export_table);
GPUDIAG_EXPORT int InitializeInjectionNvtxExtension(void* module);

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

/* Called by each copy of an extension of NVTX: the one with payloads tells which communicator NCCL made. */
int InitializeInjectionNvtxExtension(void* module) {
  void* function = library_function("gpudiag_inject_nvtx_extension");
  int (*attach)(void*);
  if (function == NULL) return 0;
  memcpy(&attach, &function, sizeof attach);
  return attach(module);
}
