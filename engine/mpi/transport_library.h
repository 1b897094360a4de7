// Opens the library that knows MPI.
#pragma once

#include <string>

#include "engine/mpi/transport.h"

namespace tandem::mpi {

// Initialises MPI. Throws UnavailableError, with the reason, where it cannot be used.
Transport& open_transport();

// Finds the library: beside the program's libraries in an install, else in the build. Returns "" if it is in neither.
std::string transport_library();

}  // namespace tandem::mpi
