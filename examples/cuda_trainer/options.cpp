// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Option {
  const char* name;
  int TrainerOptions::*value;
  int least;
  const char* help;
};

constexpr Option kOptions[] = {
    {"iterations", &TrainerOptions::iterations, 1, "steps to train"},
    {"devices", &TrainerOptions::devices, 1, "GPUs, each with a replica of the model"},
    {"batch", &TrainerOptions::batch, 1, "samples a step and device"},
    {"inputs", &TrainerOptions::inputs, 1, "features of a sample"},
    {"hidden", &TrainerOptions::hidden, 1, "width of the hidden layers"},
    {"layers", &TrainerOptions::layers, 1, "layers of the model"},
    {"classes", &TrainerOptions::classes, 2, "classes to tell apart"},
    {"workers", &TrainerOptions::workers, 1, "loader threads"},
    {"prefetch", &TrainerOptions::prefetch, 1, "batches each loader thread prepares ahead"},
    {"loader-ms", &TrainerOptions::loader_ms, 0, "time a loader thread takes for a batch"},
    {"log-every", &TrainerOptions::log_every, 0, "steps between two printed losses; 0: never"},
    {"logger-ms", &TrainerOptions::logger_ms, 0, "time the metrics logger takes after each step"},
    {"host-us", &TrainerOptions::host_us, 0, "bookkeeping of the host after the forward pass"},
    {"sync-every", &TrainerOptions::sync_every, 0,
     "steps between two that read the loss before the backward pass; 0: never"},
    {"tiny-kernels", &TrainerOptions::tiny_kernels, 0, "small elementwise kernels in each step"},
    {"dispatch-us", &TrainerOptions::dispatch_us, 0, "host time before each small kernel"},
    {"malloc-every", &TrainerOptions::malloc_every, 0,
     "steps between two that call cudaMalloc and cudaFree; 0: never"},
    {"checkpoint-every", &TrainerOptions::checkpoint_every, 0,
     "steps between two checkpoints; 0: never"},
    {"checkpoint-ms", &TrainerOptions::checkpoint_ms, 0, "least time for writing a checkpoint"},
    {"step-kernel-us", &TrainerOptions::step_kernel_us, 0,
     "one more kernel in each step, that occupies the GPU for so long"},
};

struct Switch {
  const char* name;
  int TrainerOptions::*value;
  const char* help;
};

constexpr Switch kSwitches[] = {
    {"graph", &TrainerOptions::graph, "launch each step as one CUDA graph"},
    {"timing", &TrainerOptions::timing, "print milliseconds an iteration to stderr at the end"},
};

struct Trouble {
  const char* name;
  const char* help;
  void (*apply)(TrainerOptions&);
};

constexpr Trouble kTroubles[] = {
    {"loader", "one slow loader thread: the GPU waits for batches",
     [](TrainerOptions& o) { o.workers = 1, o.loader_ms = 12; }},
    {"sync", "the loss is read between the passes: the host loses its lead",
     [](TrainerOptions& o) { o.sync_every = 1, o.host_us = 700; }},
    {"tiny", "hundreds of small kernels a step, dispatched slowly: bound by launches",
     [](TrainerOptions& o) { o.tiny_kernels = 600, o.dispatch_us = 10; }},
    {"malloc", "cudaMalloc and cudaFree in each step",
     [](TrainerOptions& o) { o.malloc_every = 1, o.host_us = 700; }},
    {"checkpoint", "a slow checkpoint every 10 steps",
     [](TrainerOptions& o) { o.checkpoint_every = 10, o.checkpoint_ms = 60; }},
    {"logger", "a metrics logger that takes 12 ms after each step",
     [](TrainerOptions& o) { o.logger_ms = 12; }},
};

void print_help(const char* program) {
  const TrainerOptions defaults;
  std::printf("Usage: %s [options]\n\nTrains a small model on made-up data.\n\n", program);
  for (const Option& option : kOptions) {
    std::printf("  --%-18s %s (default %d)\n", option.name, option.help, defaults.*option.value);
  }
  for (const Switch& option : kSwitches) std::printf("  --%-18s %s\n", option.name, option.help);
  std::printf("  --trouble KIND       bring in what ails real jobs; other options tune it:\n");
  for (const Trouble& trouble : kTroubles) {
    std::printf("      %-16s %s\n", trouble.name, trouble.help);
  }
}

bool apply_trouble(const char* name, TrainerOptions& options) {
  for (const Trouble& trouble : kTroubles) {
    if (std::strcmp(trouble.name, name) == 0) {
      trouble.apply(options);
      return true;
    }
  }
  std::fprintf(stderr, "unknown trouble '%s'; --help lists them\n", name);
  return false;
}

bool set_value(const Option& option, const char* text, TrainerOptions& options) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < option.least || value > 1'000'000'000) {
    std::fprintf(stderr, "--%s needs a number of at least %d, not '%s'\n", option.name,
                 option.least, text);
    return false;
  }
  options.*option.value = static_cast<int>(value);
  return true;
}

// Handles argument `i` of the second pass; returns how many arguments it took, 0 on an error.
int parse_argument(int argc, char** argv, int i, TrainerOptions& options) {
  const char* name = argv[i] + 2;
  if (std::strncmp(argv[i], "--", 2) == 0) {
    for (const Switch& option : kSwitches) {
      if (std::strcmp(option.name, name) == 0) {
        options.*option.value = 1;
        return 1;
      }
    }
    const bool has_value = i + 1 < argc;
    if (std::strcmp(name, "trouble") == 0 && has_value) return 2;  // done by the first pass
    for (const Option& option : kOptions) {
      if (std::strcmp(option.name, name) == 0 && has_value) {
        return set_value(option, argv[i + 1], options) ? 2 : 0;
      }
    }
  }
  std::fprintf(stderr, "unknown option or missing value: '%s'; try --help\n", argv[i]);
  return 0;
}

}  // namespace

ParseOutcome parse_options(int argc, char** argv, TrainerOptions& options) {
  // A trouble sets several options, so it goes first: those named beside it tune it.
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      print_help(argv[0]);
      return ParseOutcome::kHelp;
    }
    if (std::strcmp(argv[i], "--trouble") == 0 && i + 1 < argc &&
        !apply_trouble(argv[i + 1], options)) {
      return ParseOutcome::kError;
    }
  }
  for (int i = 1; i < argc;) {
    const int taken = parse_argument(argc, argv, i, options);
    if (taken == 0) return ParseOutcome::kError;
    i += taken;
  }
  if (options.graph != 0 && options.devices > 1) {
    std::fprintf(stderr, "--graph trains on one device only\n");
    return ParseOutcome::kError;
  }
  if (options.inputs > 65536) {
    std::fprintf(stderr, "--inputs: at most 65536\n");
    return ParseOutcome::kError;
  }
  return ParseOutcome::kRun;
}
