// SPDX-License-Identifier: Apache-2.0
//
// What the trainer can be told on its command line. The defaults are a healthy job: the host stays
// ahead of the GPU. Each trouble of --trouble is a set of other values for the same options.
#pragma once

struct TrainerOptions {
  int iterations = 200;
  int devices = 1;

  // The model: a multilayer perceptron.
  int batch = 32768;
  int inputs = 16;
  int hidden = 128;
  int layers = 8;
  int classes = 16;

  // The input pipeline: each worker prepares batches ahead, up to `prefetch` of them.
  int workers = 4;
  int prefetch = 2;
  int loader_ms = 1;  // time one worker takes for a batch, as reading and decoding would

  // The loop's own habits.
  int log_every = 10;        // steps between two losses read back and printed; 0: never
  int logger_ms = 0;         // time the metrics logger takes after each step
  int host_us = 200;         // bookkeeping of the host between forward and backward pass
  int sync_every = 0;        // steps between two losses looked at before the backward pass
  int tiny_kernels = 0;      // small elementwise kernels in each step
  int dispatch_us = 0;       // host time before each of them, as a framework takes to dispatch one
  int malloc_every = 0;      // steps between two that allocate and free workspace for each layer
  int checkpoint_every = 0;  // steps between two checkpoints
  int checkpoint_ms = 0;     // least time for writing one, as slow storage takes
  int step_kernel_us = 0;    // one more kernel in each step that occupies the GPU for so long
  int graph = 0;             // 1: launch the step as one CUDA graph
  int timing = 0;            // 1: print milliseconds an iteration to stderr at the end
};

enum class ParseOutcome { kRun, kHelp, kError };

// Fills `options` from the command line. On kHelp the help was printed to stdout, on kError what is
// wrong to stderr.
ParseOutcome parse_options(int argc, char** argv, TrainerOptions& options);
