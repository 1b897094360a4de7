// Checks hwloc's XML before libhwloc sees it. Its import trusts files, and damaged ones have crashed the program inside
// it.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Returns the document reduced to what Tandem uses: objects, their names and models, and the matrix of NVLinks. Throws
// InputError with every object whose type, place, sets of processors, ids or rates are impossible.
std::string checked_hwloc_xml(std::string_view text, const std::string& file);

}  // namespace tandem
