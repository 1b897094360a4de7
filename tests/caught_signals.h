// Which signals a process catches.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace tandem {

// Returns whether the process catches the signal, by the mask of /proc.
inline bool catches(pid_t process, int signal) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  for (std::string word; in >> word;) {
    if (word != "SigCgt:") continue;
    in >> word;
    return ((std::stoull(word, nullptr, 16) >> (signal - 1)) & 1) != 0;
  }
  return false;
}

}  // namespace tandem
