// How a strategy divides a model among the devices of a job: what it needs to say of itself before it runs, and the
// training.
//
// Threads: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strategies/parallel/divided_training.h"
#include "strategies/parallel/layout/division_problem.h"
#include "strategies/parallel/layout/pipeline_schedule.h"

namespace tandem {

// A model, how it is trained, and the devices that divide it.
struct DivisionRequest {
  const Model& model;
  const TrainingSettings& settings;
  const ParallelOptions& options;
};

// What one device has of a model and of a step, from which the memory that it needs follows. In elements.
struct DeviceShare {
  struct Stage {
    std::vector<Layer> layers{};  // the device's parts
    int live = 1;                 // passes between forward and backward at the same time
  };
  struct Parameters {
    std::int64_t count = 0;
    std::int64_t parts = 1;        // devices that divide parameters, gradients and the optimizer's state
    std::int64_t state_parts = 1;  // with DeviceShare::divides_state: devices that divide the state
  };
  std::vector<Stage> stages{};
  // The order of the passes of a step through these stages. Empty: as many as are under way at the same time go
  // forward, then back.
  std::vector<PipelineAction> actions{};
  std::vector<Parameters> parameters{};
  bool divides_state = false;         // a distributed optimizer: only what kernels do not read is divided
  std::int64_t examples = 1;          // of one pass
  std::int64_t input = 0;             // of a step
  std::int64_t reduced_together = 0;  // parameters or gradients in buffers of collectives
  std::int64_t sent_together = 0;     // activations in buffers between stages
  int row_parts = 1;                  // devices that divide rows (sequence parallelism)
  int expert_row_parts = 1;           // those of them that gather rows for experts
  int key_parts = 1;                  // devices that divide sequences
  int key_rounds = 1;                 // of attention to which keys and values come piece by piece
  bool exchanges_heads = false;       // of attention
};

class Division {
 public:
  virtual ~Division() = default;

  // Returns why the model cannot be divided so; nothing where it can.
  virtual std::optional<DivisionProblem> problem(const DivisionRequest& request) const = 0;
  // Returns the shares of devices, those that need most memory among them. problem() must have found nothing.
  virtual std::vector<DeviceShare> shares(const DivisionRequest& request) const = 0;
  // Returns numbers that tell the work of the device with this rank: devices with equal ones do the same on equal
  // parts.
  virtual std::vector<std::int64_t> kind_of(int rank, const ParallelOptions& options) const = 0;
  // Returns how many devices with consecutive ranks do the same on equal parts of the model, in groups with devices at
  // the same place among theirs, with all of them or with equal parts of them, for EngineOptions::alike_devices: 1
  // where none do. problem() must have found nothing.
  virtual int alike_neighbours(const DivisionRequest& /*request*/) const { return 1; }
  // Whether its training knows DividedTraining::evaluate().
  virtual bool evaluates() const { return false; }
  // Makes one worker's part of the training. ValueError where problem() finds one.
  virtual std::unique_ptr<DividedTraining> train(Worker& worker, TrainableModel& model,
                                                 const ParallelOptions& options) const = 0;
};

}  // namespace tandem
