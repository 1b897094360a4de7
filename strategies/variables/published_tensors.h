// Stored tensors that other workers find by name: those of a coordinator's variables.
//
// Threads: any task.
#pragma once

#include <memory>
#include <string>

#include "engine/worker.h"
#include "strategies/variables/stored_variable.h"

namespace tandem {

// Makes a tensor and gives it a name of its own (StoredTensor::shared_name). Where all workers are in one process its
// memory is freed with its last user's handle; elsewhere it lives to the end of the run.
std::shared_ptr<StoredTensor> publish_tensor(Worker& worker, const SharedState::TensorFactory& make);

// Returns the tensor of this name. Throws NotFoundError where there is none, or no longer.
std::shared_ptr<StoredTensor> published_tensor(Worker& worker, const std::string& shared_name);

}  // namespace tandem
