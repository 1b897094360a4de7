// The kernels that loop over elements. They rely on the checks of engine/op.h.
#pragma once

#include "engine/op.h"

namespace tandem {

void execute_fill(const kernel::Fill& fill);
void execute_elementwise(const kernel::Elementwise& elementwise);
void execute_scale_add(const kernel::ScaleAdd& scale_add);
void execute_square_root(const kernel::SquareRoot& square_root);
void execute_relu(const kernel::Relu& relu);
void execute_relu_gradient(const kernel::ReluGradient& relu_gradient);
void execute_add_bias(const kernel::AddBias& add_bias);
void execute_sum_axis(const kernel::SumAxis& sum_axis);
void execute_scatter_rows(const kernel::ScatterRows& scatter);
void execute_copy_blocks(const kernel::CopyBlocks& copy);
void execute_copy_many(const kernel::CopyMany& copy);
void execute_cast(const kernel::Cast& cast);

}  // namespace tandem
