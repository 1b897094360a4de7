// Who sends how much to whom in a collective, for every algorithm in the same words. Both fidelities read it:
// `message` plays the steps one by one, `fluid` sends each pair's total at once and adds what the steps cost.
//
// Adding an algorithm: derive from CollectiveAlgorithm and choose it in collective_model.cc.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace tandem::sim {

enum class Operation : std::uint8_t { all_reduce, reduce, broadcast, all_gather, reduce_scatter };
std::string_view name_of(Operation operation);

struct Transfer {
  int from = 0;  // positions in the algorithm's order of the devices
  int to = 0;
  double bytes = 0;
};

struct CollectiveShape {
  Operation operation = Operation::all_reduce;
  int devices = 0;   // at least 2
  double bytes = 0;  // nccl-tests' definition: the larger of a rank's input and output
  int root = 0;      // position
};

struct Schedule {
  int steps = 0;
  // The transfers of one step; the next step starts when all have arrived.
  std::function<void(int step, std::vector<Transfer>& transfers)> transfers_of_step;
  // The first steps pay the latency of their routes; later ones follow in a filled pipeline.
  int latency_steps = 0;
  // What each pair carries altogether, and what else the slowest pair carries while the pipeline fills.
  std::vector<Transfer> flows;
  double fill_bytes = 0;
};

class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;
  virtual std::string_view name() const = 0;
  virtual Schedule plan(const CollectiveShape& shape) const = 0;
};

// The bandwidth-optimal ring (Patarasuk and Yuan, Journal of Parallel and Distributed Computing 69(2), 2009):
// reduce_scatter and all_gather take n - 1 steps of bytes / n on every edge, all_reduce one after the other;
// broadcast and reduce are chains along the ring, cut into chunks that follow each other.
class RingAlgorithm : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "ring"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

}  // namespace tandem::sim
