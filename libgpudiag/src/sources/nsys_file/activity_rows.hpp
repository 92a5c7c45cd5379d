// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// What ran on devices, and the CUDA calls of the host.
#pragma once

#include "sources/nsys_file/builder.hpp"

namespace gpudiag::nsys_file {

void read_kernels(Builder& builder);
/// Copies by the driver between host and device memory of its own accord (unified memory) are no
/// operations of anybody's stream: they are left out, and said to be.
void read_copies(Builder& builder);
void read_memsets(Builder& builder);
/// Graphs that were recorded only as a whole.
void read_graphs(Builder& builder);
/// Runtime and driver calls.
void read_calls(Builder& builder);

}  // namespace gpudiag::nsys_file
