// The kernels that look for large elements. They rely on the checks of engine/op.h.
#pragma once

#include "engine/op.h"

namespace tandem {

void execute_largest(const kernel::Largest& kernel);
void execute_top_k(const kernel::TopK& kernel);

}  // namespace tandem
