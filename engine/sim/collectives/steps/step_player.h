// Executes the steps of a collective on the network of a run.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/sim/collectives/steps/step_graph.h"
#include "engine/sim/network.h"
#include "engine/sim/simulation.h"

namespace tandem::sim::steps {

// A graph on the nodes of a topology.
struct PlacedGraph {
  struct Way {
    Network::Pair pair;
    Network::RoutePtr route;
  };
  std::shared_ptr<const StepGraph> graph;
  std::vector<Way> ways;  // by edge
};

// Called in SimGrid's kernel only (see simulation.h).
class StepPlayer : public std::enable_shared_from_this<StepPlayer> {
 public:
  StepPlayer(Simulation& simulation, Network& network, std::shared_ptr<const PlacedGraph> placed)
      : simulation_(simulation), network_(network), placed_(std::move(placed)), progress_(*placed_->graph) {}

  // A GPU, by its position, comes to the call at this date, which is not past. It sends from the graph's lead on.
  void come(int gpu, double date_s);
  // Calls `then` when all GPUs have come and all has arrived: now, if that is so already. The player keeps itself alive
  // until then.
  void finish_with(Simulation::Then then);

 private:
  void start_all();
  void start_one(int transfer);
  void end_copy(int transfer);
  void arrive(double date_s);
  void end_if_over();

  const StepGraph& graph() const { return *placed_->graph; }

  Simulation& simulation_;
  Network& network_;
  std::shared_ptr<const PlacedGraph> placed_;
  StepProgress progress_;
  Simulation::Then then_;
  std::vector<int> starting_;                        // kept for its memory
  std::map<double, std::vector<int>> on_their_way_;  // transfers that arrive at a date
};

}  // namespace tandem::sim::steps
