// What is checked of hwloc's XML before libhwloc sees it: its import trusts a file, and damaged ones have ended the
// program inside of it.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Returns the document with nothing in it but what Tandem uses: objects, their names and models, and the matrix of
// NVLinks. Throws InputError with every object whose type, place, sets of processors, ids or rates are impossible.
std::string checked_hwloc_xml(std::string_view text, const std::string& file);

}  // namespace tandem
