// Softmax and cross entropy in one pass over each row, stable for logits of any size.
#pragma once

#include "engine/op.h"

namespace tandem {

void execute_softmax_cross_entropy(const kernel::SoftmaxCrossEntropy& kernel);

}  // namespace tandem
