// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Number {
  const char* name;
  int Options::*value;
  int least;
  const char* help;
};

constexpr Number kNumbers[] = {
    {"--steps", &Options::steps, 1, "optimizer steps to train"},
    {"--batch", &Options::batch, 1, "samples a batch"},
    {"--width", &Options::width, 1, "width of the model"},
    {"--workers", &Options::workers, 0, "threads that load data; 0: the training thread does"},
    {"--log-every", &Options::log_every, 1, "steps between two printed losses"},
    {"--sample-ms", &Options::sample_ms, 0, "time to read and decode a sample"},
    {"--metrics-ms", &Options::metrics_ms, 0, "host code between the forward and the backward pass"},
    {"--tiny-kernels", &Options::tiny_kernels, 0, "small kernels in each forward pass"},
    {"--checkpoint-every", &Options::checkpoint_every, 0, "steps between two checkpoints; 0: none"},
    {"--logger-ms", &Options::logger_ms, 0, "time a logger takes at each step"},
};

constexpr const char* kItem = "--item-each-step";
constexpr const char* kCheckpoint = "--checkpoint";

void print_help(const char* program) {
  const Options defaults;
  std::printf("Usage: %s [options]\n\nTrains a small model on made-up data.\n\n", program);
  for (const Number& number : kNumbers) {
    std::printf("  %-20s N  %s (default %d)\n", number.name, number.help, defaults.*number.value);
  }
  std::printf("  %-20s    read the loss between the forward and the backward pass\n", kItem);
  std::printf("  %-20s F  file of the checkpoint (default %s)\n", kCheckpoint,
              defaults.checkpoint.c_str());
}

bool set_number(const Number& number, const char* text, Options& options) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < number.least || value > 1'000'000) {
    std::fprintf(stderr, "%s needs a number from %d to 1000000, not '%s'\n", number.name,
                 number.least, text);
    return false;
  }
  options.*number.value = static_cast<int>(value);
  return true;
}

// Takes the option at `i` and its value; moves `i` behind them.
bool take(int argc, char** argv, int& i, Options& options) {
  const char* name = argv[i++];
  if (std::strcmp(name, kItem) == 0) {
    options.item_each_step = 1;
    return true;
  }
  if (i < argc && std::strcmp(name, kCheckpoint) == 0) {
    options.checkpoint = argv[i++];
    return true;
  }
  for (const Number& number : kNumbers) {
    if (i < argc && std::strcmp(name, number.name) == 0) return set_number(number, argv[i++], options);
  }
  std::fprintf(stderr, "unknown option or missing value: '%s'; try --help\n", name);
  return false;
}

}  // namespace

ParseOutcome parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc;) {
    if (std::strcmp(argv[i], "--help") == 0) {
      print_help(argv[0]);
      return ParseOutcome::kHelp;
    }
    if (!take(argc, argv, i, options)) return ParseOutcome::kError;
  }
  return ParseOutcome::kRun;
}
