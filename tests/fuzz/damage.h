// Breaks files as people, editors and disks do. The same seed breaks the same file in the same way.
#pragma once

#include <random>
#include <string>

namespace tandem::fuzz {

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  // Changes one to three things.
  std::string of(std::string text);

 private:
  void change(std::string& text);
  void change_number(std::string& text, std::size_t from);
  void change_line(std::string& text, std::size_t from);
  std::size_t below(std::size_t limit) { return random_() % limit; }

  std::mt19937 random_;
};

}  // namespace tandem::fuzz
