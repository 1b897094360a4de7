// A place among the tokens of a shell script. For scenarios/import/shell/shell_script.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "scenarios/import/shell/shell_words.h"

namespace tandem {

class ShellCursor {
 public:
  using Words = std::initializer_list<std::string_view>;

  // `tokens` must outlive this.
  explicit ShellCursor(const std::vector<ShellToken>& tokens) : tokens_(tokens) {}

  const ShellToken& now() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  bool is(std::string_view word) const { return now().is(word); }
  bool take(std::string_view word) {
    if (!is(word)) return false;
    ++at_;
    return true;
  }
  void skip_ends() {
    while (now().mark == ShellMark::end) ++at_;
  }

  // Returns whether the list of commands that is being read ends here: at a word or bracket that closes something, or
  // at one of `stops`.
  bool is_at_stop(Words stops) const {
    if (now().mark == ShellMark::end_of_file || now().mark == ShellMark::close || now().mark == ShellMark::case_end)
      return true;
    static constexpr std::array kClosing = {"then", "else", "elif", "fi", "do", "done", "esac", "}"};
    const bool closes = std::any_of(kClosing.begin(), kClosing.end(), [&](const char* word) { return is(word); });
    return closes || std::any_of(stops.begin(), stops.end(), [&](std::string_view word) { return is(word); });
  }

 protected:
  const std::vector<ShellToken>& tokens_;
  std::size_t at_ = 0;
};

}  // namespace tandem
