// The scenario of a configuration of Hugging Face.
#pragma once

#include <string>

#include "scenarios/import/models/hugging_face.h"
#include "scenarios/import/usual_choices.h"

namespace tandem {

// Returns the strategy whose user gives the sizes of all axes.
std::string mesh_strategy();

// Returns the text of a scenario that trains the model; `model_file` is how it names the model. Throws InputError,
// which names `file`, for choices that do not fit each other.
std::string scenario_of(const HuggingFaceModel& model, const std::string& file, const std::string& model_file,
                        Choices& choices);

// Returns the strategy that divides parameters among all devices, because large models do not fit a single one.
std::string sharding_strategy();

}  // namespace tandem
