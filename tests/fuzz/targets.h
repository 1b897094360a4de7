// Every reader of files, and runs of what was read or drawn, as functions of bytes: libFuzzer calls one with what it
// makes up (fuzz.cc), and replay_test.cc all of them with the corpus.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace tandem::fuzz {

struct Target {
  const char* name = "";
  // Reads the bytes. What the reader refuses by tandem::Error is as good as what it reads; all else is a defect.
  void (*read)(std::string_view bytes) = nullptr;
  std::vector<const char*> seeds{};  // folders and files below the sources, to begin with
};

std::span<const Target> targets();

// Null: no target is called so.
const Target* find_target(std::string_view name);

}  // namespace tandem::fuzz
