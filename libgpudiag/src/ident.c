// SPDX-License-Identifier: Apache-2.0
//
// The library's version as text in the binary, so that `strings libgpudiag.so | grep '@(#)'` tells
// what a core dump or a container image holds without loading it.
__attribute__((used)) static const char kIdent[] = "@(#) gpudiag " GPUDIAG_VERSION;
