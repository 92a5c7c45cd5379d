/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUDIAG_INJECT_LIBRARY_FUNCTION_H
#define GPUDIAG_INJECT_LIBRARY_FUNCTION_H

/* `name` of the libgpudiag.so beside libgpudiag_inject.so, which is loaded for it where it is not yet, and
   never closed. NULL where that fails, which is said once. */
void* library_function(const char* name);

#endif
