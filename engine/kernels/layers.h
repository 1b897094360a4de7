// The kernels of transformer layers. They rely on the checks of engine/layer_ops.h.
#pragma once

#include "engine/op.h"

namespace tandem {

void execute_softmax(const kernel::Softmax& kernel);
void execute_softmax_gradient(const kernel::SoftmaxGradient& kernel);
void execute_normalize(const kernel::Normalize& kernel);
void execute_normalize_gradient(const kernel::NormalizeGradient& kernel);
void execute_normalize_parameter_gradients(const kernel::NormalizeParameterGradients& kernel);
void execute_activate(const kernel::Activate& kernel);
void execute_activation_gradient(const kernel::ActivationGradient& kernel);
void execute_dropout(const kernel::Dropout& kernel);
void execute_rotary(const kernel::Rotary& kernel);
void execute_gather_rows(const kernel::GatherRows& kernel);
void execute_add_rows(const kernel::AddRows& kernel);
void execute_copy_strided(const kernel::CopyStrided& kernel);
void execute_row_maxima(const kernel::RowMaxima& kernel);
void execute_exponential_sums(const kernel::ExponentialSums& kernel);
void execute_divided_cross_entropy(const kernel::DividedCrossEntropy& kernel);
void execute_largest_of_rows(const kernel::LargestOfRows& kernel);
void execute_dispatch_rows(const kernel::DispatchRows& kernel);
void execute_combine_rows(const kernel::CombineRows& kernel);
void execute_expert_weight_gradients(const kernel::ExpertWeightGradients& kernel);
void execute_raise_maximum(const kernel::RaiseMaximum& kernel);
void execute_quantise(const kernel::Quantise& kernel);

}  // namespace tandem
