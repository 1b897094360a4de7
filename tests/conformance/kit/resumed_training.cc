// Training that is lost at each point and begun again from its last checkpoint.
#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "engine/faults/faults.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/training/checkpoint_manager.h"
#include "strategies/training/optimizers.h"
#include "tests/conformance/kit/failure_points.h"
#include "tests/conformance/kit/judged_run.h"

namespace tandem {
namespace {

constexpr int kSteps = 3;

// A folder that goes with this object.
class CheckpointFolder {
 public:
  CheckpointFolder() : path_(std::filesystem::temp_directory_path() / fmt::format("tandem-resumed-{}", ::getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~CheckpointFolder() {
    std::error_code is_gone;
    std::filesystem::remove_all(path_, is_gone);
  }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;
  std::string text() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// What the workers of a run of training did.
struct TrainedRun {
  std::map<int, int> begun_at{};    // the step, by worker
  std::map<int, Numbers> values{};  // of all variables at the end of its program, by worker
  int saved = 0;                    // steps whose checkpoint the first worker has seen written
  std::string error{};              // "": the run came to its end
  bool was_lost = false;            // that error is the loss of the worker
};

class Training {
 public:
  Training(Worker& worker, Strategy& strategy, bool has_gradients)
      : worker_(worker), strategy_(strategy), has_gradients_(has_gradients) {
    make("sum", VariableAggregation::sum);
    make("on_read", VariableAggregation::sum, VariableSynchronization::on_read);
    make("weights", VariableAggregation::mean);
    make("step", VariableAggregation::only_first_replica);
    if (!has_gradients_) return;
    const Scope scope = strategy.scope();
    optimizer_.build({variables_[kWeights]});
  }

  // Goes on from the last checkpoint in the folder, if there is one.
  void run(const std::string& folder, const std::function<void(int step)>& begins,
           const std::function<void(int step)>& has_saved) {
    const Scope scope = strategy_.scope();
    Checkpoint checkpoint(worker_);
    for (const auto& variable : variables_) checkpoint.add(variable->spec().name, variable);
    if (has_gradients_) optimizer_.add_to(checkpoint);
    CheckpointManager manager(checkpoint, folder, {.max_to_keep = 2});
    manager.restore_or_initialize();
    int step = static_cast<int>(number_of(variables_[kStep]->read()));
    begins(step);
    for (; step < kSteps; ++step) {
      make_step(step);
      variables_[kStep]->assign(Value(static_cast<double>(step + 1)));
      manager.save();
      has_saved(step + 1);
    }
  }

  Numbers values() {
    Numbers all;
    for (const auto& variable : variables_) append(all, variable->read());
    if (!has_gradients_) return all;
    for (const auto& variable : optimizer_.variables()) append(all, variable->read());
    return all;
  }

 private:
  static constexpr std::size_t kWeights = 2, kStep = 3;

  void make(const std::string& name, VariableAggregation aggregation,
            VariableSynchronization synchronization = VariableSynchronization::automatic) {
    variables_.push_back(strategy_.create_variable(
        {.name = name, .shape = {1}, .synchronization = synchronization, .aggregation = aggregation}));
  }
  double number_of(const Value& value) { return host_values(worker_, value.tensor()).at(0); }
  void append(Numbers& all, const Value& value) { all.push_back(number_of(value)); }

  // Sums of whole numbers, so that they are exact in any order.
  void make_step(int step) {
    strategy_.run([&](const Value::Parts&) {
      const int id = get_replica_context()->replica_id_in_sync_group();
      const auto filled = [](double value) {
        Device& device = get_replica_context()->device();
        Tensor tensor = device.allocate(DType::f32, {1});
        device.compute_stream().launch(op::fill(tensor, value));
        return tensor;
      };
      variables_[0]->assign_add(filled(12 * (step + id + 1)));
      variables_[1]->assign_add(filled(12 * (step * id + 1)));
      if (has_gradients_) optimizer_.apply_gradients({{Value(filled(16 * (step + id + 1))), variables_[kWeights]}});
      return Value();
    });
  }

  Worker& worker_;
  Strategy& strategy_;
  const bool has_gradients_;
  std::vector<std::shared_ptr<Variable>> variables_;
  optimizers::SGD optimizer_{{.learning_rate = 0.5, .momentum = 0.5}};
};

TrainedRun train(const StrategyUnderTest& tested, const std::string& folder, const Faults& faults) {
  TrainedRun run;
  std::mutex mutex;  // guards it from the workers of real engines
  try {
    run_strategy(
        tested, tested.world,
        [&](Worker& worker, Strategy& strategy) {
          Training training(worker, strategy, tested.traits.trains_in_step);
          training.run(
              folder,
              [&](int step) {
                const std::lock_guard lock(mutex);
                run.begun_at[worker.index()] = step;
              },
              [&](int step) {
                const std::lock_guard lock(mutex);
                if (worker.index() == 0) run.saved = step;
              });
          Numbers values = training.values();
          const std::lock_guard lock(mutex);
          run.values[worker.index()] = std::move(values);
        },
        std::make_shared<const Faults>(faults));
  } catch (const UnavailableError& error) {
    run.error = error.what();
    run.was_lost = run.error.find("was lost before call") != std::string::npos;
  } catch (const std::exception& error) {
    run.error = error.what();
  }
  return run;
}

// What is wrong with a run that went on where `lost` ended.
std::string problem_of(const TrainedRun& resumed, const TrainedRun& lost, const TrainedRun& undisturbed) {
  if (!resumed.error.empty()) return "the run after it ended with an error: " + resumed.error;
  for (const auto& [worker, step] : resumed.begun_at) {
    // A checkpoint may be complete before the call that writes it has returned.
    if (step == lost.saved || step == lost.saved + 1) continue;
    return fmt::format("worker {} went on at step {}, must go on at step {}, which was saved", worker, step,
                       lost.saved);
  }
  for (const auto& [worker, values] : resumed.values) {
    const Numbers& expected = undisturbed.values.at(worker);
    if (values == expected) continue;
    return fmt::format("worker {} ended with {}, must end with {} as in the undisturbed run", worker,
                       numbers_text(values), numbers_text(expected));
  }
  return "";
}

// Returns "" or what is wrong. Sets `is_over` where the worker makes fewer calls.
std::string problem_at(const StrategyUnderTest& tested, const TrainedRun& undisturbed, const LostWorker& where,
                       bool& is_over) {
  const CheckpointFolder folder;
  const TrainedRun lost = train(tested, folder.text(), {.lost_workers = {where}});
  is_over = lost.error.empty();
  if (!is_over && !lost.was_lost) return "ended with another error: " + lost.error;
  return problem_of(is_over ? lost : train(tested, folder.text(), {}), is_over ? TrainedRun{} : lost, undisturbed);
}

}  // namespace

void expect_training_to_resume(const StrategyUnderTest& tested) {
  const FailurePoints points = FailurePoints::asked(149);
  StrategyUnderTest seeded = tested;
  int points_tried = 0;
  for (int seed = points.first_seed; seed < points.first_seed + points.seeds; ++seed) {
    if (seeded.world.schedule_seed) seeded.world.schedule_seed = static_cast<std::uint64_t>(seed);
    const CheckpointFolder folder;
    const TrainedRun undisturbed = train(seeded, folder.text(), {});
    std::string problem = undisturbed.error, failure = "no failure";
    for (int worker = 0; worker < tested.workers + tested.servers; ++worker) {
      bool is_over = false;
      for (std::int64_t call = seed % points.stride; problem.empty() && !is_over; call += points.stride) {
        ++points_tried;
        failure = fmt::format("worker {} lost before call {}", worker, call);
        problem = problem_at(seeded, undisturbed, {.worker = worker, .call = call}, is_over);
      }
    }
    if (problem.empty()) continue;
    ADD_FAILURE() << message_of(
        {fmt::format("{} steps of training with a checkpoint after each, and {}", kSteps, failure),
         "goes on from the last checkpoint, with every step done exactly once"},
        problem, "", testing::PrintToString(seeded));
    return;
  }
  testing::Test::RecordProperty("runs", points_tried);
}

}  // namespace tandem
