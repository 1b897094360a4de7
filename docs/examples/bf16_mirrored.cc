// Mirrored training whose gradients travel as bf16, in half the bytes, and are added up as such. Everything that
// differs from MirroredStrategy is here.
#include <algorithm>

#include "strategies/strategies.h"
#include "strategies/types/mirrored.h"

namespace {

using namespace tandem;

// The tensors of a value, converted on their devices.
Value converted(const Value& value, DType dtype) {
  const auto convert = [dtype](const Value& part) {
    const Tensor& from = part.tensor();
    Tensor to = from.device().allocate(dtype, from.shape());
    Op cast = op::cast(to, from);
    cast.category = Category::communication;
    from.device().compute_stream().launch(std::move(cast));
    return Value(std::move(to));
  };
  if (value.is(ValueKind::tensor)) return convert(value);
  Value::Parts parts;
  for (const Value& part : value.parts()) parts.push_back(convert(part));
  return value.is(ValueKind::mirrored) ? Value::mirrored(std::move(parts)) : Value::per_replica(std::move(parts));
}

// A dense f32 gradient, a part for each replica, on its way to a trainable variable.
bool is_gradient(const ReducePair& pair) {
  const auto& [value, destinations] = pair;
  return destinations.variable() && destinations.variable()->trainable() && value.is(ValueKind::per_replica) &&
         std::all_of(value.parts().begin(), value.parts().end(), [](const Value& part) {
           return part.is(ValueKind::tensor) && part.tensor().dtype() == DType::f32;
         });
}

class Bf16MirroredExtended final : public MirroredExtended {
 public:
  using MirroredExtended::MirroredExtended;

 protected:
  ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& options) override {
    std::vector<ReducePair> compressed = pairs;
    for (ReducePair& pair : compressed) {
      if (is_gradient(pair)) pair.first = converted(pair.first, DType::bf16);
    }
    ReductionInFlight reduction = MirroredExtended::do_batch_reduce_to(op, compressed, options);
    reduction.wait();  // the compute streams, not this thread
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (is_gradient(pairs[i])) reduction.values[i] = converted(reduction.values[i], DType::f32);
    }
    return reduction;
  }
};

std::unique_ptr<Strategy> make_bf16_mirrored(Worker& worker, const StrategyOptions& options) {
  std::vector<Device*> devices = options.devices;
  if (devices.empty()) devices.assign(worker.devices().begin(), worker.devices().end());
  auto extended = std::make_unique<Bf16MirroredExtended>(worker, ReplicatedSpec{.devices = devices});
  return std::make_unique<Strategy>("bf16_mirrored", std::move(extended));
}

[[maybe_unused]] const bool registered = [] {
  register_strategy({.name = "bf16_mirrored", .make = make_bf16_mirrored});
  return true;
}();

}  // namespace
