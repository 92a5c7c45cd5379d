// SPDX-License-Identifier: Apache-2.0
//
// What the trainer can be told on its command line. The defaults are a healthy job.
#pragma once

#include <string>

struct Options {
  int steps = 100;
  int batch = 16;
  int width = 2048;
  int workers = 2;           // threads that load data; 0: the training thread does
  int log_every = 10;        // steps between two losses read back and printed
  int sample_ms = 0;         // time to read and decode a sample
  int item_each_step = 0;    // 1: read the loss between the forward and the backward pass
  int metrics_ms = 0;        // host code that computes metrics at the same place
  int tiny_kernels = 0;      // small kernels in each forward pass
  int checkpoint_every = 0;  // steps between two checkpoints
  int logger_ms = 0;         // time a logger takes at each step
  std::string checkpoint = "checkpoint.pt";
};

enum class ParseOutcome { kRun, kHelp, kError };

// Fills `options` from the command line. On kHelp the help was printed to stdout, on kError what is
// wrong to stderr.
ParseOutcome parse_options(int argc, char** argv, Options& options);
