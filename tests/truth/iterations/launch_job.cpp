// SPDX-License-Identifier: Apache-2.0
#include "iterations/launch_job.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace gpudiag::truth {
namespace {

constexpr std::int64_t kBetween = 5'000;       // ns from call to call
constexpr std::int64_t kBatch = 900'000;       // until the next batch is there
constexpr std::int64_t kAfterSync = 60'000;

class Maker {
 public:
  explicit Maker(const JobPlan& plan) : plan_(plan), random_(plan.seed * 7919 + 17) {
    layers_ = std::max<std::size_t>(1, (plan.launches / plan.micro_batches / plan.networks) / 26);
  }

  LaunchJob make() {
    for (std::size_t i = 0; i < plan_.before; ++i) kernel("initialise_" + std::to_string(i % 3), 40 + i);
    if (!plan_.loops) return scatter();
    for (std::size_t i = 0; i < plan_.iterations; ++i) iterate(i);
    if (plan_.noise > 0) disturb();
    return std::move(job_);
  }

 private:
  using Size = std::uint64_t;

  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  void launch(Made kind, const std::string& name, Size shape) {
    const auto jitter = static_cast<std::int64_t>(below(2'000));
    job_.launches.push_back({name, shape, kind, std::exchange(pause_, 0) + kBetween + jitter, false});
  }
  void kernel(const std::string& name, Size shape) { launch(Made::kKernel, name, shape); }
  void pause(std::int64_t ns) { pause_ += ns + static_cast<std::int64_t>(below(static_cast<std::size_t>(ns / 4 + 1))); }

  // A kernel of a layer; some are chosen by the size of what they get.
  void operate(const std::string& name, std::size_t layer, std::size_t place) {
    const Size grid = 1000 * (layer + 1) + 10 * place + 100'000 * network_;
    if (!plan_.lengths) return kernel(kernel_name(name), grid);
    const bool varies = static_cast<double>(place % 10) < 10 * plan_.varying;
    kernel(kernel_name(varies ? name + "_tile" + std::to_string(length_ % 3) : name), grid + 7 * length_);
  }
  std::string kernel_name(const std::string& name) const {
    return plan_.same_kernels || network_ == 0 ? name : name + "_net" + std::to_string(network_);
  }

  void forward(bool training) {
    const std::size_t unrolled = plan_.unrolled ? 1 + length_ % 4 : 1;
    kernel(kernel_name("embedding"), 31 + length_);
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      static const char* const kParts[] = {"layer_norm", "gemm_qkv", "attention", "gemm_out", "add", "gelu", "gemm_up", "gemm_down"};
      for (std::size_t again = 0; again < unrolled; ++again)
        for (std::size_t place = 0; place < std::size(kParts); ++place) operate(kParts[place], layer, place);
      if (training) operate("dropout", layer, 8);
    }
    kernel(kernel_name("loss"), 5);
  }
  void backward() {
    kernel(kernel_name("loss_backward"), 5);
    for (std::size_t layer = layers_; layer-- > 0;) {
      static const char* const kParts[] = {"dropout_backward", "gemm_down_dgrad", "gemm_down_wgrad", "gelu_backward", "gemm_up_dgrad", "gemm_up_wgrad", "add", "gemm_out_dgrad", "gemm_out_wgrad", "attention_backward", "gemm_qkv_dgrad", "gemm_qkv_wgrad", "reduce_bias", "layer_norm_backward", "accumulate_grad", "accumulate_grad"};
      if (plan_.recompute)
        for (const char* part : {"layer_norm", "gemm_qkv", "attention", "gemm_out", "add", "gelu", "gemm_up"}) operate(part, layer, 0);
      for (std::size_t place = 0; place < std::size(kParts); ++place) operate(kParts[place], layer, place);
    }
    kernel(kernel_name("embedding_backward"), 31 + length_);
  }
  void step() {
    const Size own = 900'000 * (network_ + 1);
    switch (plan_.optimizer) {
      case Optimizer::kForeach:
        for (std::size_t i = 0; i < 12; ++i)
          kernel("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<Functor" + std::to_string(i % 5) + ">", own + i);
        return;
      case Optimizer::kFused: return kernel("FusedAdamMathFunctor", own);
      case Optimizer::kNamed:
        for (std::size_t layer = 0; layer < layers_; ++layer) kernel("sgd_update", own + layer);
        return;
      case Optimizer::kEach:
        for (std::size_t i = 0; i < std::max<std::size_t>(12, 4 * layers_); ++i)
          for (const char* part : {"vectorized_mul", "vectorized_add"}) kernel(part, own + i);
        return;
      case Optimizer::kUnknown:
        for (const char* part : {"k41", "k42", "k43", "k44"}) kernel(part, own);
        return;
    }
  }

  void fetch() {
    length_ = plan_.lengths || plan_.unrolled ? below(29) : 0;
    if (plan_.waits) pause(kBatch);
    if (!plan_.copies) return;
    launch(Made::kToDevice, "", 1);
    launch(Made::kToDevice, "", 2);
  }

  void tiny() {
    if (plan_.launches >= 4 && plan_.copies) launch(Made::kToDevice, "", 1);
    for (std::size_t i = 0; i + 2 < plan_.launches - (plan_.launches >= 4 && plan_.copies ? 1 : 0); ++i)
      kernel("forward_" + std::to_string(i), 1);
    kernel("backward", 1);
    kernel(plan_.optimizer == Optimizer::kUnknown ? "k40" : "sgd_update", 1);
  }

  void one_graph() {
    if (!plan_.graph_alone) fetch();
    else pause(kBatch);
    launch(Made::kGraph, "embedding", 31);
    job_.launches.back().updates = plan_.optimizer != Optimizer::kUnknown;
    if (plan_.reads_loss) read();
  }
  void read() {
    launch(Made::kToHost, "", 4);
    pause(kAfterSync);
  }

  void pipelined() {
    const std::size_t ahead = std::min<std::size_t>(3, plan_.micro_batches);
    for (std::size_t i = 0; i < ahead; ++i) forward(true);
    for (std::size_t i = ahead; i < plan_.micro_batches; ++i) backward(), forward(true);
    for (std::size_t i = 0; i < ahead; ++i) backward();
    step();
  }

  void train() {
    if (plan_.graph) return one_graph();
    if (plan_.launches < 12) {
      if (plan_.waits) pause(kBatch);
      return tiny();
    }
    if (plan_.pipeline) return fetch(), pipelined();
    for (network_ = 0; network_ < plan_.networks; ++network_) {
      for (std::size_t micro = 0; micro < plan_.micro_batches; ++micro) {
        if (network_ == 0) fetch();
        if (network_ == 1) forward(true);  // through the other one
        forward(true);
        if (plan_.zero_first && micro == 0) kernel("multi_tensor_apply_kernel<ClearGradients>", 77);
        backward();
      }
      step();
    }
    network_ = 0;
    if (plan_.reads_loss) read();
  }

  void iterate(std::size_t i) {
    const std::size_t begin = job_.launches.size();
    train();
    for (std::size_t k = 0; i == 0 && k < plan_.warm_up; ++k) kernel("try_" + std::to_string(k % 17), 1);
    if (plan_.log_every > 0 && i % plan_.log_every == plan_.log_every - 1) kernel("mean_of_metric", 1), read();
    job_.iterations.push_back({begin, job_.launches.size()});
    if (plan_.checkpoint_every > 0 && i % plan_.checkpoint_every == plan_.checkpoint_every - 1) {
      for (std::size_t k = 0; k < 12 * layers_; ++k) launch(Made::kToHost, "", k);
      pause(40'000'000);
    }
    if (plan_.evaluate_every > 0 && i % plan_.evaluate_every == plan_.evaluate_every - 1) evaluate();
  }
  void evaluate() {
    for (std::size_t batch = 0; batch < plan_.evaluation_batches; ++batch) {
      fetch();
      if (plan_.launches < 12) {
        kernel("forward_0", 1);
        kernel("argmax", 1);
        continue;
      }
      forward(false);
      kernel("argmax", 3);
      launch(Made::kToHost, "", 4);
      pause(kAfterSync);
    }
  }

  // Nothing that comes again: a search for hyperparameters, a notebook.
  LaunchJob scatter() {
    for (std::size_t i = 0; i < plan_.launches * plan_.iterations; ++i) {
      if (below(40) == 0) pause(kBatch);
      kernel("kernel_" + std::to_string(below(60)), below(9));
    }
    return std::move(job_);
  }

  // Half of it is lost, the other half comes twice or comes from elsewhere.
  void disturb() {
    std::vector<std::string> names;
    for (const MadeLaunch& made : job_.launches) names.push_back(made.name);
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    LaunchJob noisy;
    std::vector<std::size_t> moved;
    const auto of_all = [&](double share) { return below(1'000'000) < static_cast<std::size_t>(share * 1e6); };
    for (const MadeLaunch& made : job_.launches) {
      moved.push_back(noisy.launches.size());
      if (of_all(plan_.noise / 2)) continue;
      noisy.launches.push_back(made);
      if (of_all(plan_.noise / 2)) noisy.launches.push_back({names[below(names.size())], below(99), Made::kKernel, kBetween, false});
    }
    moved.push_back(noisy.launches.size());
    for (const TrueIteration& one : job_.iterations) noisy.iterations.push_back({moved[one.begin], moved[one.end]});
    job_ = std::move(noisy);
  }

  const JobPlan plan_;
  std::mt19937_64 random_;
  std::size_t layers_;
  std::size_t network_ = 0;
  std::size_t length_ = 0;
  std::int64_t pause_ = 0;
  LaunchJob job_;
};

}  // namespace

LaunchJob make_job(const JobPlan& plan) { return Maker{plan}.make(); }

}  // namespace gpudiag::truth
