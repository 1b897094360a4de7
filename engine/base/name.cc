#include "engine/base/name.h"

#include <functional>
#include <mutex>
#include <ostream>
#include <unordered_set>

namespace tandem {
namespace {

struct HashOfText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Texts = std::unordered_set<std::string, HashOfText, std::equal_to<>>;

}  // namespace

const std::string* Name::kept(std::string_view text) {
  if (text.empty()) return nullptr;
  static std::mutex mutex;
  static Texts& texts = *new Texts;  // lives as long as the process, because other static objects may have names
  const std::lock_guard lock(mutex);
  const auto found = texts.find(text);
  return found != texts.end() ? &*found : &*texts.emplace(text).first;
}

const std::string& Name::none() {
  static const std::string& empty = *new std::string;
  return empty;
}

std::ostream& operator<<(std::ostream& out, Name name) {
  return out << name.text();
}

}  // namespace tandem
