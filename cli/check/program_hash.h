// A name for this program: equal for equal files of it and of the libraries that it has loaded.
#pragma once

#include <string>

namespace tandem {

// Returns 16 hexadecimal digits; empty where the files cannot be read.
std::string program_hash();

}  // namespace tandem
