// The name of an op, a collective or a step: a text of which the process keeps one copy, so that a name is as cheap to
// copy and to compare as a pointer. A run of millions of records has some hundreds of names.
//
// Threads: any. Copies that the process keeps are never freed.
#pragma once

#include <compare>
#include <concepts>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

namespace tandem {

class Name {
 public:
  Name() = default;  // empty
  // Looks the text up among those that are kept. Code that needs the same name very often keeps the Name.
  template <typename Text>
  requires std::convertible_to<const Text&, std::string_view> Name(const Text& text)
      : text_(kept(text)) {}  // NOLINT(google-explicit-constructor): a name is a text

  const std::string& text() const { return text_ == nullptr ? none() : *text_; }
  operator const std::string&() const { return text(); }  // NOLINT(google-explicit-constructor): likewise
  operator std::string_view() const { return text(); }    // NOLINT(google-explicit-constructor): likewise
  bool empty() const { return text_ == nullptr; }

  friend bool operator==(Name a, Name b) { return a.text_ == b.text_; }
  friend std::strong_ordering operator<=>(Name a, Name b) {  // as texts
    return a == b ? std::strong_ordering::equal : a.text() <=> b.text();
  }
  template <typename Text>
  requires(std::convertible_to<const Text&, std::string_view> && !std::is_same_v<Text, Name>) friend bool operator==(
      Name a, const Text& b) {
    return a.text() == std::string_view(b);
  }
  friend std::ostream& operator<<(std::ostream& out, Name name);

 private:
  static const std::string* kept(std::string_view text);  // null for an empty one
  static const std::string& none();

  const std::string* text_ = nullptr;
};

}  // namespace tandem
