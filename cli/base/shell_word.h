// Words of commands that messages tell people to copy.
#pragma once

#include <string>

namespace tandem {

// Returns the word in a form that a POSIX shell reads back unchanged.
std::string shell_word(const std::string& word);

}  // namespace tandem
