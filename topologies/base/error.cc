#include "topologies/base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "topologies/base/shown.h"
#include "topologies/base/utf8.h"

namespace tandem {
namespace {

std::string joined(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += diagnostic.text();
  }
  return text;
}

// Returns the edit distance in which swapping two neighbours counts as one edit, a common slip on a keyboard.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

FilePlace place_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t begin = before.rfind('\n') + 1;  // 0 in the first line
  return {.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          .column = 1 + static_cast<int>(before.size() - begin)};
}

Diagnostic problem_at(std::string file, const FilePlace& place, std::string message, std::string path) {
  return {std::move(file), place.line, place.column, std::move(path), std::move(message), place.byte};
}

std::string Diagnostic::text() const {
  std::string text = file;
  if (line > 0) text += (text.empty() ? "" : ":") + std::to_string(line);
  if (line > 0 && column > 0) text += ":" + std::to_string(column);
  if (line == 0 && byte >= 0) text += (text.empty() ? "byte " : ":byte ") + std::to_string(byte);
  if (!path.empty()) text += (text.empty() ? "" : ": ") + path;
  return shown(text.empty() ? message : text + ": " + message);
}

InputError::InputError(std::vector<Diagnostic> diagnostics)
    : Error(joined(diagnostics)), diagnostics_(std::move(diagnostics)) {}

std::string nearest_name(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestWord = 100;  // nobody mistypes a name by a page
  if (word.size() > kLongestWord) return "";
  std::string nearest;
  std::size_t allowed = std::max<std::size_t>(1, word.size() / 3);
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance >= word.size() || distance >= name.size()) continue;  // nothing in common
    if (distance > allowed || (!nearest.empty() && distance == allowed)) continue;
    nearest = name;
    allowed = distance;
  }
  return nearest;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 40;
  if (text.size() <= kMost) return text;
  std::size_t size = 0;
  while (true) {
    const std::size_t next = size + std::max<std::size_t>(1, utf8_size(std::string_view(text).substr(size)));
    if (next > kMost) return text.substr(0, size) + "...";
    size = next;
  }
}

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: a bug in tandem: %s (%s does not hold)\n", file, line, message.c_str(), condition);
  std::abort();
}

void require_failed(const std::string& message) {
  throw UsageError(message);
}

void require_in_destructor_failed(const char* message) {
  std::fprintf(stderr, "incorrect use of tandem: %s\n", message);
  std::abort();
}

void unreachable(const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: a bug in tandem: %s\n", file, line, message.c_str());
  std::abort();
}

}  // namespace tandem
