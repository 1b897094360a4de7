// The compact lists in which Slurm describes a job step. Pure functions, for any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// "n[1-2],m5,o[08-10,12]" -> n1 n2 m5 o08 o09 o10 o12: numbers are filled up with zeros to the width of the first.
// ValueError for another grammar.
std::vector<std::string> expand_hostlist(std::string_view hosts);
// "3(x2),2" -> 3 3 2. ValueError for another grammar.
std::vector<int> expand_tasks_per_node(std::string_view tasks);

}  // namespace tandem
