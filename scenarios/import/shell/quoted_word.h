// Words of commands that people copy, and of scripts.
#pragma once

#include <string>

namespace tandem {

// Return the word in a form that a POSIX shell reads back unchanged: in quotes, or as it is where none are needed.
std::string quoted_word(const std::string& word);
std::string shell_word(const std::string& word);

}  // namespace tandem
