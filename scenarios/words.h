// Words that people write in scenarios and on the command line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device.h"

namespace tandem {

class YamlReader;

std::vector<std::pair<std::string, DeviceType>> device_type_words();

// Reports `word`, which was read from `value`, unless it is empty or one of `known`: "unknown <what> 'wrod' (one of
// ...); did you mean 'word'?"
void check_known(const YamlReader& value, std::string_view what, const std::string& word,
                 const std::vector<std::string>& known);

}  // namespace tandem
