// Decides which measurements are not replayed, and which are replayed but reported apart from the others. The rules
// look at what a file states, never at an error; docs/validation.md has them in words.
#pragma once

#include <string>

#include "scenarios/measurements/measurement_file.h"

namespace tandem::validation {

// Returns the first rule by which a table is left out, or an empty text:
//   the machine was unhealthy in the words of who published the table
//   the file does not name the machine well enough to simulate it
//   the collective or the element type is none of Tandem's
std::string left_out_by(const MeasurementFile& file, const MeasuredTable& table);

// Returns the first rule by which a table is reported apart, or an empty text if it counts:
//   one process drives several devices: its launches have a time of their own
//   the GPUs of the machine have no P2P: data is staged in host memory, at a rate that nobody states
//   cards without NVLink of which nobody states whether they have P2P
//   several nodes whose NICs are not stated
//   several nodes over another network than InfiniBand or RoCE: EFA, TCPX, TCPXO, Slingshot, sockets
std::string apart_by(const ReplayMachine& machine);

// Does the same for a training row, by the first of these rules and another:
//   the power limit of its GPUs is below that of the catalog's: their rate under load is in no source
std::string training_apart_by(const ReplayMachine& machine);

}  // namespace tandem::validation
