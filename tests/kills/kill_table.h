// What the kills of each command did, printed as a table at the end of the tests.
#pragma once

#include <string>

#include "tests/kills/victim.h"

namespace tandem::kills {

// Seconds that the kills of one command may take: an equal part of TANDEM_KILL_SECONDS (default: 24).
double seconds_of_a_command();

std::string name_of_signal(int signal);

void note_kill(const std::string& command, int signal, const Death& death);
void note_broken_file(const std::string& command, int signal);
void note_lost_line(const std::string& command, int signal);

}  // namespace tandem::kills
