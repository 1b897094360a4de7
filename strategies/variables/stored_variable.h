// Variables with one stored tensor: on a parameter server that several workers use, or on the parameter device of
// CentralStorage.
//
// A read brings a copy to the replica's device. Updates are applied where the tensor is, each exactly once and one
// after another. The updates of one worker's replicas are combined first, those of different workers are not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/worker.h"
#include "strategies/variables/variable.h"

namespace tandem {

// How old a value had become by the time an update computed from it was applied: the number of other workers' updates
// between this worker's read and its update, summed over this worker's updates.
struct Staleness {
  std::int64_t updates = 0, sum = 0, maximum = 0;
  double mean() const { return updates == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(updates); }
  void add(const Staleness& other);
};

// What a variable is kept in. The lock of the tensor, whose version counts the updates issued so far, is held while
// work that reads or changes it is issued, and guards `readers`.
struct StoredTensor {
  std::shared_ptr<SharedTensor> shared{};
  std::string shared_name{};            // by which other workers find it; "": they do not
  std::function<void()> before_read{};  // blocks until this worker may read it; empty: it may at any time

  struct Reader {
    std::int64_t version_read = 0, own_updates_since = 0;
    Staleness staleness{};
  };
  std::map<int, Reader> readers{};  // by the index of the worker that computes with the value

  const Tensor& tensor() const { return shared->tensor(); }
};

class StoredVariable final : public Variable {
 public:
  // `aggregates`: several replicas of this worker use the variable, so that a change in a replica context combines
  // theirs, and aggregation NONE is a ValueError there.
  StoredVariable(Strategy& strategy, VariableSpec spec, std::shared_ptr<StoredTensor> stored, bool aggregates);

  VariableKind kind() const override { return aggregates_ ? VariableKind::aggregating : VariableKind::plain; }
  Tensor value() override;
  Tensor component_value(int component) override;
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;
  Tensor saved_value() override;
  std::optional<std::int64_t> write_count() const override { return std::nullopt; }
  const std::string& shared_name() const { return stored_->shared_name; }

  // Calls `update` while no other worker issues one, and counts it as this worker's. The work that it issues follows
  // that of all earlier updates. Returns the staleness of this one.
  Staleness apply(const std::function<void()>& update, int worker);
  // The staleness of one worker's updates, or of all workers'.
  Staleness staleness(std::optional<int> worker) const;

 protected:
  Tensor change(Change change, const Value& value) override;
  Value result_for_all(Device& device) override;

 private:
  void check_aggregation() const;
  void await_updates() const;
  Tensor snapshot();
  Tensor snapshot_in(Tensor snapshot);
  Tensor brought_to(Device& device);

  std::shared_ptr<StoredTensor> stored_;
  bool aggregates_;
};

// The stream of a server's device that moves one worker's data to and from it. Each worker has its own, so that a slow
// worker's transfers do not delay the others'.
Stream& link_stream(Device& server, int worker);

}  // namespace tandem
