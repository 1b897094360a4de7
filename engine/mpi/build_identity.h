// A name for the build of this program: equal for equal programs.
#pragma once

#include <string>

namespace tandem::mpi {

// Returns the build id that the linker has left in the program, in hexadecimal digits; "none" where it has left none.
std::string build_identity();

}  // namespace tandem::mpi
