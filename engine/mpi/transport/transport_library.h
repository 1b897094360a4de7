// Opens the library that knows MPI.
#pragma once

#include <string>

#include "engine/mpi/transport/transport.h"

namespace tandem::mpi {

// Initialises MPI. Throws UnavailableError, with the reason, where it cannot be used.
Transport& open_transport();

// Returns the MPI that open_transport() would use, such as "Open MPI v4.1.4"; "" where none is found.
std::string found_mpi();

// Finds the library: beside the program's libraries in an install, else in the build. Returns "" if it is in neither.
std::string transport_library();

}  // namespace tandem::mpi
