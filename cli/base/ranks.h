// What commands have in common that share their work among the processes of mpirun or srun.
#pragma once

#include <functional>

#include "engine/launched_job.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tandem {

// Adds --wait.
void add_wait_option(CLI::App& command, double& wait_s);

// Runs a command's part in this process and returns the exit code. Ranks of one host read the same files, so the first
// of them reports for all what is wrong with these: InputError of any other one is dropped, with exit code 0, because a
// launcher may kill all ranks as soon as one fails.
int on_this_rank(const std::function<int(const Rank& rank)>& part);

}  // namespace tandem
