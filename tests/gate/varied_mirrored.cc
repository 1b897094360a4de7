// Mirrored training whose step does something more, as the environment variable TANDEM_VARIANT says: the programs that
// gate_table.py compares by `tandem check --against`.
//
//   none         nothing more
//   cpu:AMOUNT   so many passes over a buffer of 4 KiB, on each device, in an op that `none` has as well: the exact
//                counts are equal, the processor time is not
//   copy         one more copy, of 64 bytes on the first device
//   message      one more all-reduce, of one number per replica
#include <cstdlib>
#include <string>
#include <vector>

#include "strategies/base/errors.h"
#include "strategies/strategies.h"
#include "strategies/types/mirrored.h"

namespace {

using namespace tandem;

struct Variant {
  long passes = 0;
  bool copies = false;
  bool sends = false;
};

Variant variant_of_environment() {
  const char* const value = std::getenv("TANDEM_VARIANT");
  const std::string text = value == nullptr ? "none" : value;
  if (text == "none") return {};
  if (text == "copy") return {.copies = true};
  if (text == "message") return {.sends = true};
  const std::string prefix = "cpu:";
  if (text.starts_with(prefix) && text.size() <= prefix.size() + 9 &&
      text.find_first_not_of("0123456789", prefix.size()) == text.npos && text.size() > prefix.size()) {
    return {.passes = std::stol(text.substr(prefix.size()))};
  }
  throw ValueError("TANDEM_VARIANT is '" + text + "'; write none, cpu:AMOUNT with a whole number, copy or message");
}

// Multiplies and adds so often that no compiler removes it: the result is in the tensor.
Op more_work(const Tensor& buffer, long passes) {
  return op::custom("more_work", {.flops = 0, .bytes = static_cast<double>(buffer.size_bytes())}, {buffer},
                    {.cpu = [passes](std::span<const Tensor> operands) {
                      const std::span<float> values = operands[0].values<float>();
                      for (long pass = 0; pass < passes; ++pass) {
                        for (float& value : values) value = value * 0.5F + 1;
                      }
                    }});
}

class VariedMirroredExtended final : public MirroredExtended {
 public:
  VariedMirroredExtended(Worker& worker, const ReplicatedSpec& spec, const Variant& variant)
      : MirroredExtended(worker, spec), variant_(variant) {
    for (Device* device : spec.devices) {
      buffers_.push_back(device->allocate(DType::f32, {1024}));
      messages_.push_back(device->allocate(DType::f32, {1}));
      device->compute_stream().launch(op::fill(buffers_.back(), 0));
      device->compute_stream().launch(op::fill(messages_.back(), 0));
    }
    from_ = spec.devices.front()->allocate(DType::f32, {16});
    to_ = spec.devices.front()->allocate(DType::f32, {16});
    spec.devices.front()->compute_stream().launch(op::fill(from_, 0));
  }

 protected:
  // run() is a step.
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    Value result = MirroredExtended::do_call_for_each_replica(function, arguments);
    for (const Tensor& buffer : buffers_) buffer.device().compute_stream().launch(more_work(buffer, variant_.passes));
    if (variant_.copies) from_.device().compute_stream().copy(to_, from_);
    if (variant_.sends) {
      Value::Parts parts;
      for (const Tensor& message : messages_) parts.emplace_back(message);
      all_reduce(ReduceOp::sum, Value::per_replica(std::move(parts)), {});
    }
    return result;
  }

 private:
  Variant variant_;
  std::vector<Tensor> buffers_, messages_;  // by replica
  Tensor from_, to_;
};

std::unique_ptr<Strategy> make_varied_mirrored(Worker& worker, const StrategyOptions& options) {
  std::vector<Device*> devices = options.devices;
  if (devices.empty()) devices.assign(worker.devices().begin(), worker.devices().end());
  auto extended =
      std::make_unique<VariedMirroredExtended>(worker, ReplicatedSpec{.devices = devices}, variant_of_environment());
  return std::make_unique<Strategy>("varied_mirrored", std::move(extended));
}

[[maybe_unused]] const bool registered = [] {
  register_strategy({.name = "varied_mirrored", .make = make_varied_mirrored});
  return true;
}();

}  // namespace
