// SPDX-License-Identifier: Apache-2.0
//
// A trainer in C++ on libtorch with gpudiag linked in: it starts a session itself, says which ranges
// load data and write checkpoints, and ends each iteration by step(). Nothing has to be put around
// the program when it is started. README.md says how to build it alone.
#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "gpudiag/gpudiag.hpp"
#include "options.hpp"

namespace {

constexpr std::int64_t kVocabulary = 1024;
constexpr std::int64_t kLength = 1024;  // tokens of a sample
constexpr int kLayers = 4;

void work_on_host(int milliseconds) {
  if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Made-up text: sample `index` is always the same.
class Tokens : public torch::data::Dataset<Tokens> {
 public:
  explicit Tokens(const Options& options)
      : samples_{static_cast<std::size_t>(options.steps) * static_cast<std::size_t>(options.batch)},
        sample_ms_{options.sample_ms} {}

  torch::data::Example<> get(std::size_t index) override {
    work_on_host(sample_ms_);  // reading and decoding
    const auto first = static_cast<std::int64_t>(index);
    const auto tokens = torch::arange(first, first + kLength + 1, torch::kLong).mul_(7).remainder_(kVocabulary);
    return {tokens.slice(0, 0, kLength), tokens.slice(0, 1)};
  }

  std::optional<std::size_t> size() const override { return samples_; }

 private:
  std::size_t samples_;
  int sample_ms_;
};

// Predicts a token from the one before it.
struct Model : torch::nn::Module {
  Model(const Options& options, torch::Device device)
      : tiny_kernels{options.tiny_kernels},
        embedding{register_module("embedding", torch::nn::Embedding(kVocabulary, options.width))},
        output{register_module("output", torch::nn::Linear(options.width, kVocabulary))} {
    for (int layer = 0; layer < kLayers; ++layer) {
      hidden->push_back(torch::nn::Linear(options.width, options.width));
    }
    register_module("hidden", hidden);
    to(device);
  }

  torch::Tensor forward(const torch::Tensor& tokens) {
    auto values = embedding(tokens);
    for (const auto& layer : *hidden) values = layer->as<torch::nn::Linear>()->forward(values).relu();
    auto features = torch::ones({64}, values.options().requires_grad(false));
    for (int i = 0; i < tiny_kernels; ++i) features = features * 0.5;
    return output(values);
  }

  int tiny_kernels;
  torch::nn::Embedding embedding;
  torch::nn::ModuleList hidden;
  torch::nn::Linear output;
};

torch::Tensor loss_of(Model& model, const torch::data::Example<>& batch, torch::Device device) {
  const auto inputs = batch.data.pin_memory().to(device, /*non_blocking=*/true);
  const auto targets = batch.target.pin_memory().to(device, /*non_blocking=*/true);
  return torch::nn::functional::cross_entropy(model.forward(inputs).flatten(0, 1), targets.flatten());
}

bool is_due(int step, int every) { return every > 0 && (step + 1) % every == 0; }

void train(const Options& options) {
  const torch::Device device{torch::kCUDA};
  torch::manual_seed(0);
  const auto model = std::make_shared<Model>(options, device);
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(1e-3)};
  const auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Tokens{options}.map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions(static_cast<std::size_t>(options.batch))
          .workers(static_cast<std::size_t>(options.workers)));
  auto batches = loader->begin();

  for (int step = 0; step < options.steps; ++step) {
    const auto batch = [&] {
      // Whether this thread makes the batch or waits for those that do is known here only.
      const gpudiag::Range range{options.workers == 0 ? "next_batch" : "wait_for_batch",
                                 gpudiag::Cause::kDataLoading};
      return step == 0 ? *batches : *++batches;
    }();
    auto loss = loss_of(*model, batch, device);
    if (options.item_each_step != 0) loss.item<float>();
    work_on_host(options.metrics_ms);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (is_due(step, options.log_every)) std::printf("step %d loss %.4f\n", step + 1, loss.item<double>());
    work_on_host(options.logger_ms);
    if (is_due(step, options.checkpoint_every)) {
      const gpudiag::Range range{"checkpoint", gpudiag::Cause::kCheckpoint};
      torch::save(model, options.checkpoint);
    }
    gpudiag::step();
  }
  torch::cuda::synchronize();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  switch (parse_options(argc, argv, options)) {
    case ParseOutcome::kHelp: return 0;
    case ParseOutcome::kError: return 2;
    case ParseOutcome::kRun: break;
  }
  if (!torch::cuda::is_available()) {
    std::fprintf(stderr, "libtorch_trainer: there is no GPU\n");
    return 1;
  }
  const gpudiag::Session session;
  train(options);
  return 0;
}
