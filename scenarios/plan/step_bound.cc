#include "scenarios/plan/step_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "scenarios/workloads/mlp_layers.h"
#include "strategies/parallel/mesh_division.h"

namespace tandem {
namespace {

using PassKind = PipelineAction::Pass;

LonePass& operator+=(LonePass& sum, const LonePass& more) {
  sum.forward_s += more.forward_s;
  sum.backward_s += more.backward_s;
  sum.weights_s += more.weights_s;
  sum.either_s += more.either_s;
  return sum;
}

LonePass sum(const std::vector<LonePass>& layers, std::size_t first, std::size_t end) {
  LonePass all;
  for (std::size_t i = first; i < end; ++i) all += layers[i];
  return all;
}

double seconds_of(PassKind pass, const LonePass& stage) {
  switch (pass) {
    case PassKind::forward:
      return stage.forward_s;
    case PassKind::backward:
      return stage.backward_s;
    case PassKind::inputs:
      return stage.backward_s - stage.weights_s - stage.either_s;
    case PassKind::weights:
      return stage.weights_s;
  }
  TANDEM_UNREACHABLE("a kind of passes");
}

// The passes of a step on the devices of a pipeline, each in its order.
class Pipeline {
 public:
  Pipeline(const MeshDivision& how, const Job& job, const LayersSettings& layers, const LonePasses& passes,
           const LinkRates& rates)
      : mesh_(*job.mesh),
        micro_batches_(static_cast<std::size_t>(mesh_.micro_batches_of_chunk())),
        machines_are_alike_(rates.are_alike || mesh_.pipeline == 1) {
    const std::vector<std::size_t> first = how.first_layers(layers.model, mesh_);
    exchange_ = replica_exchange(mesh_, layers, first, rates);
    for (std::size_t stage = 0; stage + 1 < first.size(); ++stage) {
      first_.push_back(sum(passes.first, first[stage], first[stage + 1]));
      more_.push_back(sum(passes.more, first[stage], first[stage + 1]));
    }
    for (int place = 0; place < mesh_.pipeline; ++place) devices_.push_back({.actions = how.schedule(place, mesh_)});
    const std::size_t all = static_cast<std::size_t>(mesh_.ways()) * first_.size() * micro_batches_;
    forward_end_s_.resize(all, kNotYet);
    backward_end_s_.resize(all, kNotYet);
  }

  // Returns when the first device ends, or how long the one with most work takes by itself, whichever is more.
  double seconds() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t place = 0; place < devices_.size(); ++place) goes_on = advance(place) || goes_on;
    }
    if (!machines_are_alike_)
      return devices_.front().busy_s + exchange_.updated_s;  // others may be faster than the one that was simulated
    double most_s = with_exchange_s(devices_.front().now_s);
    for (const Device& device : devices_) most_s = std::max(most_s, device.busy_s);
    return most_s;
  }

 private:
  static constexpr double kNotYet = -1;
  struct Device {
    std::vector<PipelineAction> actions{};
    std::size_t done = 0;
    double now_s = 0, busy_s = 0;
  };

  // Gradients are summed once the last passes have begun, parameters gathered at the end or at the beginning.
  double with_exchange_s(double end_s) const {
    const double begin_s = exchange_.is_summed_later ? end_s : std::min(end_s, last_passes_s_);
    const double gathered_s = exchange_.is_gathered_first
                                  ? 0
                                  : std::accumulate(exchange_.gathered_s.begin(), exchange_.gathered_s.end(), 0.0);
    return std::max(end_s, begin_s + exchange_.summed_s) + exchange_.updated_s + gathered_s;
  }

  // Notes when gradients may be complete, and lets a first pass wait for the parameters of its stage.
  void exchange_beside(const PipelineAction& action, Device& device, double begin_s) {
    const bool is_last = action.micro_batch + 1 == mesh_.micro_batches_of_chunk();
    const bool has_gradients = action.pass == PassKind::backward || action.pass == PassKind::weights;
    if (is_last && has_gradients) last_passes_s_ = std::min(last_passes_s_, begin_s);
    if (action.pass != PassKind::forward || action.micro_batch != 0 || !exchange_.is_gathered_first) return;
    double gathered_s = 0;
    for (std::size_t chunk = 0; chunk <= static_cast<std::size_t>(action.chunk) && chunk < exchange_.gathered_s.size();
         ++chunk)
      gathered_s += exchange_.gathered_s[chunk];
    device.now_s = std::max(device.now_s, gathered_s);
  }

  std::size_t index_of(int way, int stage, int micro_batch) const {
    const auto place = static_cast<std::size_t>(way) * first_.size() + static_cast<std::size_t>(stage);
    return place * micro_batches_ + static_cast<std::size_t>(micro_batch);
  }

  // Returns when what the pass waits for has ended; nothing if it has not yet.
  std::optional<double> ready_s(const PipelineAction& action, int way, int stage) const {
    const int last = static_cast<int>(first_.size()) - 1;
    double date = 0;
    if (action.pass == PassKind::forward && stage > 0)
      date = forward_end_s_[index_of(way, stage - 1, action.micro_batch)];
    if (action.pass == PassKind::backward || action.pass == PassKind::inputs) {
      date = stage == last ? forward_end_s_[index_of(way, stage, action.micro_batch)]
                           : backward_end_s_[index_of(way, stage + 1, action.micro_batch)];
    }
    return date == kNotYet ? std::nullopt : std::optional(date);
  }

  // Does the passes of a device that can be done; returns whether there were any.
  bool advance(std::size_t place) {
    Device& device = devices_[place];
    const std::size_t before = device.done;
    for (; device.done < device.actions.size(); ++device.done) {
      const PipelineAction& action = device.actions[device.done];
      const int stage = mesh_.stage_of(static_cast<int>(place), action.chunk);
      const int way = mesh_.ways() > 1 ? action.chunk : 0;
      const std::optional<double> ready = ready_s(action, way, stage);
      if (!ready) break;
      const auto& passes = action.micro_batch == 0 ? first_ : more_;
      const double takes_s = seconds_of(action.pass, passes[static_cast<std::size_t>(stage)]);
      device.busy_s += takes_s;
      if (action.pass == PassKind::weights) device.busy_s += passes[static_cast<std::size_t>(stage)].either_s;
      const double begin_s = std::max(device.now_s, *ready);
      device.now_s = begin_s + takes_s;
      if (place == 0) exchange_beside(action, device, begin_s);
      if (action.pass == PassKind::forward) forward_end_s_[index_of(way, stage, action.micro_batch)] = device.now_s;
      if (action.pass == PassKind::backward || action.pass == PassKind::inputs)
        backward_end_s_[index_of(way, stage, action.micro_batch)] = device.now_s;
    }
    return device.done > before;
  }

  const ParallelOptions& mesh_;
  std::size_t micro_batches_;               // that enter from one end
  std::vector<LonePass> first_{}, more_{};  // by stage
  std::vector<Device> devices_{};
  std::vector<double> forward_end_s_{}, backward_end_s_{};
  ReplicaExchange exchange_{};
  bool machines_are_alike_;
  double last_passes_s_ = std::numeric_limits<double>::infinity();
};

// Whether passes take turns, so that the work of one hides what the other one exchanges.
bool hides_exchanges(const Job& job) {
  if (!job.mesh) return false;
  const PipelineOrder order = job.mesh->order;
  return job.mesh->overlap_experts || order == PipelineOrder::dual_pipe || order == PipelineOrder::dual_pipe_v;
}

// Whether a step may be that of other devices than the one that was simulated.
bool may_be_on_others(const Job& job) {
  if (!has_stages(job)) return job.servers > 0;
  const bool is_in_order = dynamic_cast<const MeshDivision*>(job.strategy.division->how.get()) != nullptr;
  return job.mesh->pipeline > 1 && !is_in_order;
}

// What each device of a strategy that has whole replicas, or equal pieces of one, does once gradients are known.
double update_of_replica_s(const Job& job, const LinkRates& rates) {
  if (job.layers == nullptr || job.strategy.is_registered) return 0;
  const bool has_pieces = job.strategy.compared_as == ComparedRuns::sharded;
  if (!has_pieces && job.strategy.compared_as != ComparedRuns::replicas) return 0;
  const auto parameters = static_cast<double>(job.layers->model.parameters());
  return least_update_s(*job.layers, parameters, has_pieces ? static_cast<double>(job.devices) : 1, rates);
}

}  // namespace

double least_step_s(const Job& job, const LoneWork& work, const LinkRates& rates) {
  const LonePasses& passes = hides_exchanges(job) ? work.unhidden : work.all;
  if (passes.first.empty()) return 0;
  if (!rates.are_alike && may_be_on_others(job)) return 0;
  const double first_s = sum(passes.first, 0, passes.first.size()).both_s();
  if (!has_stages(job)) return first_s + update_of_replica_s(job, rates);
  const ParallelOptions& mesh = *job.mesh;
  if (const auto* how = dynamic_cast<const MeshDivision*>(job.strategy.division->how.get()))
    return job.mlp != nullptr ? Pipeline(*how, job, layers_of(*job.mlp), passes, rates).seconds()
                              : Pipeline(*how, job, *job.layers, passes, rates).seconds();
  // Some device has at least as much work as all of them have on average.
  const double more_s = sum(passes.more, 0, passes.more.size()).both_s();
  return (first_s + (mesh.micro_batches - 1) * more_s) / mesh.pipeline;
}

}  // namespace tandem
