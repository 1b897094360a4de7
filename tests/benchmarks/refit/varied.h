// Constants of the environment, for a program that is built to vary them (CMakeLists.txt); no other includes this.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tandem::sim::kernel_constants {

// Returns the number in the environment variable TANDEM_<name>; without it, `value`.
inline double varied(const char* name, double value) {
  const char* const text = std::getenv((std::string("TANDEM_") + name).c_str());
  if (text == nullptr) return value;
  std::size_t read = 0;
  const double found = std::stod(text, &read);
  if (text[read] != '\0') throw std::invalid_argument(std::string("TANDEM_") + name + " is no number: " + text);
  return found;
}

}  // namespace tandem::sim::kernel_constants
