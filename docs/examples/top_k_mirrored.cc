// Mirrored training that sends only the largest elements of each gradient and keeps the others for later steps (Lin et
// al., "Deep Gradient Compression", ICLR 2018). Everything that differs from MirroredStrategy is here.
#include <algorithm>
#include <cmath>
#include <map>

#include "engine/engine.h"
#include "strategies/cross_device/copies.h"
#include "strategies/strategies.h"
#include "strategies/types/mirrored.h"

namespace {

using namespace tandem;

// Sets the elements of `left` that `indices` name to zero.
Op clear_at(Tensor left, Tensor indices) {
  const auto bytes = static_cast<double>(indices.size_bytes() + indices.element_count() * size_of(left.dtype()));
  return op::custom("clear_at", {.flops = 0, .bytes = bytes}, {std::move(left), std::move(indices)},
                    {.cpu = [](std::span<const Tensor> operands) {
                      const std::span<float> elements = operands[0].values<float>();
                      for (const std::int64_t index : operands[1].values<std::int64_t>()) elements[index] = 0;
                    }});
}

void launch(Op op, Device& device) {
  device.compute_stream().launch(as_communication(std::move(op)));
}

class TopKMirroredExtended final : public MirroredExtended {
 public:
  // Sends the share `share` of the elements of a gradient in a step; gradients of fewer than `least` elements go whole.
  TopKMirroredExtended(Worker& worker, const ReplicatedSpec& spec, double share, std::int64_t least)
      : MirroredExtended(worker, spec),
        share_(share),
        least_(least),
        selects_(worker.capabilities().selection_kernels) {}

 protected:
  ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& options) override {
    std::vector<ReducePair> compressed = pairs;
    for (auto& [value, destinations] : compressed) {
      if (is_large_gradient(value, destinations)) value = largest_of(value, destinations.variable());
    }
    ReductionInFlight reduction = MirroredExtended::do_batch_reduce_to(op, compressed, options);
    reduction.wait();  // the compute streams, not this thread
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto& [value, destinations] = pairs[i];
      if (!is_large_gradient(value, destinations)) continue;
      reduction.values[i] = dense_value(reduction.values[i], destinations.variable()->shape());
    }
    return reduction;
  }

 private:
  // A dense f32 gradient, a part for each replica, on its way to a trainable variable.
  bool is_large_gradient(const Value& value, const Destinations& destinations) const {
    return selects_ && destinations.variable() && destinations.variable()->trainable() &&
           value.is(ValueKind::per_replica) &&
           std::all_of(value.parts().begin(), value.parts().end(), [&](const Value& part) {
             return part.is(ValueKind::tensor) && part.tensor().dtype() == DType::f32 &&
                    part.tensor().element_count() >= least_;
           });
  }

  // Adds the gradients to what is left of earlier ones, and takes the largest elements away as rows of one element.
  Value largest_of(const Value& gradients, const std::shared_ptr<Variable>& variable) {
    auto& [owner, left] = left_[variable.get()];
    if (owner.lock() != variable) left.clear();  // of a variable that is no more
    owner = variable;
    left.resize(gradients.parts().size());
    Value::Parts largest;
    for (std::size_t replica = 0; replica < left.size(); ++replica) {
      const Tensor gradient = gradients.parts()[replica].tensor();
      Device& device = gradient.device();
      const Shape flat{gradient.element_count()};
      const bool is_first = !left[replica];
      if (is_first) left[replica] = device.allocate(DType::f32, flat);
      launch(op::scale_add(left[replica], gradient.reshape(flat), 1, is_first ? 0 : 1), device);
      const auto count = std::max<std::int64_t>(1, std::llround(share_ * static_cast<double>(flat[0])));
      const IndexedSlices rows{device.allocate(DType::f32, {count}), device.allocate(DType::i64, {count}), flat};
      launch(op::top_k(rows.values, rows.indices, left[replica]), device);
      launch(clear_at(left[replica], rows.indices), device);
      largest.emplace_back(rows);
    }
    return Value::per_replica(std::move(largest));
  }

  static Value dense_value(const Value& rows, const Shape& shape) {
    const auto dense_part = [&](const Value& part) { return Value(dense(part.slices()).reshape(shape)); };
    if (rows.is(ValueKind::sparse)) return dense_part(rows);
    Value::Parts parts;
    for (const Value& part : rows.parts()) parts.push_back(dense_part(part));
    return Value::mirrored(std::move(parts));
  }

  double share_;
  std::int64_t least_;
  bool selects_;
  struct Left {
    std::weak_ptr<Variable> of;
    std::vector<Tensor> replicas;
  };
  std::map<const Variable*, Left> left_;  // what has not been sent yet
};

std::unique_ptr<Strategy> make_top_k_mirrored(Worker& worker, const StrategyOptions& options) {
  std::vector<Device*> devices = options.devices;
  if (devices.empty()) devices.assign(worker.devices().begin(), worker.devices().end());
  auto extended = std::make_unique<TopKMirroredExtended>(worker, ReplicatedSpec{.devices = devices},
                                                         options.own.number("share"), options.own.count("least"));
  return std::make_unique<Strategy>("top_k_mirrored", std::move(extended));
}

[[maybe_unused]] const bool registered = [] {
  register_strategy(
      {.name = "top_k_mirrored",
       .keys = {number_key("share", 0.01, 1e-6, 1, "Share of the elements of a gradient that is sent in a step."),
                count_key("least", 1024, 1, 1'000'000'000, "Gradients of fewer elements are sent whole.")},
       .make = make_top_k_mirrored});
  return true;
}();

}  // namespace
