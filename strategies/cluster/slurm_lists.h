// Readers of the compact lists in which Slurm describes a job step. Pure functions, for any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Expands "n[1-2],m5,o[08-10,12]" to n1 n2 m5 o08 o09 o10 o12. Numbers are padded with zeros to the width of the first.
// ValueError for a malformed list.
std::vector<std::string> expand_hostlist(std::string_view hosts);
// Expands "3(x2),2" to 3 3 2. ValueError for a malformed list.
std::vector<int> expand_tasks_per_node(std::string_view tasks);

}  // namespace tandem
