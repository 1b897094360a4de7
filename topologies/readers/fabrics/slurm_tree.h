// The switches and blocks of Slurm's descriptions, in whichever form they were written.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "topologies/readers/fabric_description.h"

namespace tandem {

// One switch or block, with the keys of topology.conf: switchname or blockname, nodes, switches.
struct SlurmLine {
  int number = 0;
  std::map<std::string, std::pair<std::string, int>> values{};  // by key in lower case, with the column
};

// Builds the tree. Throws InputError with the earlier `problems` and those of the tree: names given twice or unknown,
// cycles, nodes at two switches.
FabricDescription fabric_of(const std::vector<SlurmLine>& lines, const std::string& file, Diagnostics& problems);

}  // namespace tandem
