// Variables with one stored tensor: on a parameter server that several workers use, or on the parameter device of
// CentralStorage.
//
// Reading brings a copy to the replica's device. Updates are applied where the tensor is, each exactly once, one after
// the other; replicas of one worker are combined first, workers are not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "engine/worker.h"
#include "strategies/variables/variable.h"

namespace tandem {

// How old what was read had become when an update that was made from it was applied: updates of other workers between
// this worker's read and its update, per update.
struct Staleness {
  std::int64_t updates = 0, sum = 0, maximum = 0;
  double mean() const { return updates == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(updates); }
  void add(const Staleness& other);
};

// What all workers of the run share of one variable. The monitor is held while work that reads or changes the tensor is
// issued, and guards the rest.
struct StoredTensor {
  Tensor tensor{};
  std::unique_ptr<Monitor> monitor{};
  std::int64_t version = 0;  // updates issued so far
  struct Reader {
    std::int64_t version_read = 0, own_updates_since = 0;
    Staleness staleness{};  // of its updates
  };
  std::map<int, Reader> readers{};  // by index of the worker that computes with the value
};

class StoredVariable final : public Variable {
 public:
  // `aggregates`: several replicas of this worker use it, so that a change in a replica context combines theirs (and
  // refuses aggregation NONE: ValueError).
  StoredVariable(Strategy& strategy, VariableSpec spec, std::shared_ptr<StoredTensor> stored, bool aggregates);

  VariableKind kind() const override { return aggregates_ ? VariableKind::aggregating : VariableKind::plain; }
  Tensor value() override;
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;
  Tensor saved_value() override;

  // Calls `update` alone, with what it issues following all earlier updates, and counts it as made by this worker.
  void apply(const std::function<void()>& update, int worker);
  // Of one worker's updates, or of all.
  Staleness staleness(std::optional<int> worker) const;

 protected:
  Tensor change(Change change, const Value& value) override;

 private:
  void check_aggregation() const;
  Tensor brought_to(Device& device);

  std::shared_ptr<StoredTensor> stored_;
  bool aggregates_;
};

// The stream of a server's device on which a worker moves data to and from it, so that a slow worker's transfers do not
// hold up the others'.
Stream& link_stream(Device& server, int worker);

}  // namespace tandem
