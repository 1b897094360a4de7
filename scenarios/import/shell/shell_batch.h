// The options of Slurm that a script has in its comments: #SBATCH --nodes=2
#pragma once

#include <vector>

#include "scenarios/import/shell/shell_values.h"

namespace tandem {

// Sets the variables that Slurm would set from such options, which are `words`.
void set_batch_variables(const std::vector<ShellToken>& words, ShellValues& values);

}  // namespace tandem
