// The example with parameter servers, for more workers.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace tandem {

// Returns its text on three workers, with more of it below.
inline std::string servers_of_three_workers(const std::string& more) {
  std::ifstream in(TANDEM_SOURCE_DIR "/scenarios/examples/digits-parameter-server.yaml");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("workers: 2"), 10, "workers: 3");
  text.replace(text.find("batch: 256"), 10, "batch: 384");
  return text + more + "\n";
}

}  // namespace tandem
