#include "topologies/base/strict_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace tandem {
namespace {

constexpr std::size_t kMostReported = 100;  // problems of one call

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

bool has_leading_zero(std::string_view text) {
  text = without_sign(text);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

bool is_hex_or_octal(std::string_view text) {
  text = without_sign(text);
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X' || text[1] == 'o');
}

bool is_all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_not_finite(std::string_view text) {
  text = without_sign(text);
  if (text.starts_with('.')) text.remove_prefix(1);
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

std::optional<double> plain_number(std::string_view text) {
  if (text.ends_with('s')) return std::nullopt;  // a unit of time
  return parse_quantity(text, Dimension::seconds);
}

std::string description(const YamlNode& node) {
  switch (node.kind) {
    case YamlKind::null:
      return "nothing";
    case YamlKind::list:
      return "the list";
    case YamlKind::map:
      return "the map";
    case YamlKind::scalar:
      return node.quoted ? "the text \"" + shortened(node.text) + "\"" : "'" + shortened(node.text) + "'";
  }
  TANDEM_UNREACHABLE("a YamlKind outside its enumerators");
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(word, known);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

std::string expected_range(const YamlReader::Range& range) {
  const bool has_least = std::isfinite(range.least), has_most = std::isfinite(range.most);
  if (has_least && has_most) return fmt::format("must be from {} to {}", range.least, range.most);
  const std::string lower = has_least                    ? fmt::format("at least {}", range.least)
                            : std::isfinite(range.above) ? fmt::format("greater than {}", range.above)
                                                         : "";
  if (!has_most) return "must be " + lower;
  return fmt::format("must be {}{}at most {}", lower, lower.empty() ? "" : " and ", range.most);
}

}  // namespace

void Diagnostics::throw_if_any() const {
  if (list_.empty()) return;
  std::vector<Diagnostic> sorted = list_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic& a, const Diagnostic& b) {
    if (a.file != b.file) return false;  // files stay in the order they were read
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::vector<Diagnostic> unique;
  std::set<std::string> seen;
  for (Diagnostic& diagnostic : sorted) {
    if (seen.insert(diagnostic.text()).second) unique.push_back(std::move(diagnostic));
  }
  if (const std::size_t more = unique.size(); more > kMostReported) {
    Diagnostic rest = std::move(unique[kMostReported]);
    rest.path.clear();
    rest.message = fmt::format("{} more problems from here on", more - kMostReported);
    unique.resize(kMostReported);
    unique.push_back(std::move(rest));
  }
  throw InputError(std::move(unique));
}

struct YamlReader::Shared {
  const YamlDocument& document;
  Diagnostics& diagnostics;
  std::map<const YamlNode*, std::set<std::string, std::less<>>> asked;  // keys known in the maps read so far
  std::set<const YamlNode*> refused;                                    // values of the wrong kind, already reported
};

YamlReader::YamlReader(const YamlDocument& document, Diagnostics& diagnostics)
    : YamlReader(std::make_shared<Shared>(Shared{document, diagnostics, {}, {}}), &document.root(), "",
                 document.root().line, document.root().column) {
  for (const Diagnostic& problem : document.problems()) diagnostics.add(problem);
}

YamlReader::YamlReader(std::shared_ptr<Shared> shared, const YamlNode* node, std::string path, int line, int column)
    : shared_(std::move(shared)), node_(node), path_(std::move(path)), line_(line), column_(column) {}

const std::string& YamlReader::file() const {
  return shared_->document.file();
}

Diagnostics& YamlReader::diagnostics() const {
  return shared_->diagnostics;
}

void YamlReader::error(std::string message) const {
  shared_->diagnostics.add(shared_->document.problem_at(line_, column_, path_, std::move(message)));
}

void YamlReader::expected(std::string_view what) const {
  if (shared_->refused.insert(node_).second) error(fmt::format("{}, found {}", what, description(*node_)));
}

// Returns whether the value exists and has the wanted kind. Reports a wrong kind only once.
bool YamlReader::expect(YamlKind wanted, std::string_view what) const {
  if (node_ == nullptr) return false;
  if (node_->kind == wanted) return true;
  expected(fmt::format("expected {}", what));
  return false;
}

std::string YamlReader::child_path(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

const YamlNode::Entry* YamlReader::find(std::string_view key) const {
  if (node_ == nullptr || node_->kind != YamlKind::map) return nullptr;
  for (const YamlNode::Entry& entry : node_->entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

YamlReader YamlReader::child(const YamlNode::Entry& entry) const {
  const bool has_mark = entry.value->kind != YamlKind::null;  // "key:" alone is best shown at the key
  return {shared_, entry.value, child_path(entry.key), has_mark ? entry.value->line : entry.line,
          has_mark ? entry.value->column : entry.column};
}

YamlReader YamlReader::absent(std::string_view key) const {
  return {shared_, nullptr, child_path(key), line_, column_};
}

YamlReader YamlReader::optional(std::string_view key) const {
  if (!expect(YamlKind::map, "a map")) return absent(key);
  shared_->asked[node_].emplace(key);
  const YamlNode::Entry* entry = find(key);
  return entry ? child(*entry) : absent(key);
}

YamlReader YamlReader::required(std::string_view key) const {
  YamlReader reader = optional(key);
  if (!reader.present() && is_map()) error(fmt::format("missing key '{}'", key));
  return reader;
}

bool YamlReader::has(std::string_view key) const {
  return find(key) != nullptr;
}

bool YamlReader::has_only(const std::vector<std::string>& keys) const {
  if (!is_map()) return true;
  std::set<std::string, std::less<>>& asked = shared_->asked[node_];
  asked.insert(keys.begin(), keys.end());
  return std::ranges::all_of(node_->entries, [&](const YamlNode::Entry& entry) { return asked.contains(entry.key); });
}

std::vector<std::pair<std::string, YamlReader>> YamlReader::entries() const {
  std::vector<std::pair<std::string, YamlReader>> readers;
  if (!expect(YamlKind::map, "a map")) return readers;
  for (const YamlNode::Entry& entry : node_->entries) {
    shared_->asked[node_].insert(entry.key);
    readers.emplace_back(entry.key, child(entry));
  }
  return readers;
}

std::vector<YamlReader> YamlReader::list() const {
  std::vector<YamlReader> readers;
  if (!expect(YamlKind::list, "a list")) return readers;
  for (const YamlNode* item : node_->items) {
    readers.push_back(
        YamlReader(shared_, item, path_ + "[" + std::to_string(readers.size()) + "]", item->line, item->column));
  }
  return readers;
}

void YamlReader::finish() const {
  std::set<const YamlNode*> seen;
  if (node_ != nullptr) finish(*node_, path_, seen);
}

void YamlReader::finish(const YamlNode& node, const std::string& path, std::set<const YamlNode*>& seen) const {
  if (!seen.insert(&node).second) return;  // an alias
  for (std::size_t i = 0; i < node.items.size(); ++i)
    finish(*node.items[i], path + "[" + std::to_string(i) + "]", seen);
  const auto asked = shared_->asked.find(&node);
  if (asked == shared_->asked.end()) return;
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string below = path.empty() ? entry.key : path + "." + entry.key;
    if (asked->second.contains(entry.key)) {
      finish(*entry.value, below, seen);
      continue;
    }
    std::vector<std::string> free;  // known keys that are not in use
    for (const std::string& known : asked->second) {
      const auto is_known = [&](const YamlNode::Entry& other) { return other.key == known; };
      if (std::none_of(node.entries.begin(), node.entries.end(), is_known)) free.push_back(known);
    }
    shared_->diagnostics.add(shared_->document.problem_at(
        entry.line, entry.column, path, fmt::format("unknown key '{}'{}", entry.key, suggestion(entry.key, free))));
  }
}

std::string YamlReader::text(std::string_view otherwise) const {
  if (!expect(YamlKind::scalar, "a text")) return std::string(otherwise);
  const bool ambiguous =
      (has_leading_zero(node_->text) && is_all_digits(without_sign(node_->text))) || is_hex_or_octal(node_->text);
  if (!node_->quoted && ambiguous) {
    error(fmt::format("'{}' looks like a number; quote it if it is a text", shortened(node_->text)));
    return std::string(otherwise);
  }
  if (node_->text.empty()) {
    error("must not be empty");
    return std::string(otherwise);
  }
  return node_->text;
}

bool YamlReader::boolean(bool otherwise) const {
  if (!expect(YamlKind::scalar, "true or false")) return otherwise;
  if (!node_->quoted && node_->text == "true") return true;
  if (!node_->quoted && node_->text == "false") return false;
  expected("expected true or false");
  return otherwise;
}

std::int64_t YamlReader::whole_number(std::int64_t least, std::int64_t most, std::int64_t otherwise) const {
  if (!expect(YamlKind::scalar, "a whole number")) return otherwise;
  const std::string& text = node_->text;
  if (node_->quoted || !is_all_digits(without_sign(text))) {
    expected("expected a whole number");
    return otherwise;
  }
  if (has_leading_zero(text)) {
    error(fmt::format("'{}' has a leading zero, which some readers take for octal", shortened(text)));
    return otherwise;
  }
  std::int64_t value = 0;
  const char* first = text.data() + (text[0] == '+' ? 1 : 0);
  const auto result = std::from_chars(first, text.data() + text.size(), value);
  if (result.ec != std::errc{} || value < least || value > most) {
    error(most == std::numeric_limits<std::int64_t>::max()
              ? fmt::format("must be at least {}, found {}", least, shortened(text))
              : fmt::format("must be from {} to {}, found {}", least, most, shortened(text)));
    return otherwise;
  }
  return value;
}

double YamlReader::number(Range range) const {
  if (!expect(YamlKind::scalar, "a number")) return range.otherwise;
  const std::string& text = node_->text;
  if (!node_->quoted && is_not_finite(text)) {
    error(fmt::format("must be a finite number, found '{}'", text));
    return range.otherwise;
  }
  if (!node_->quoted && has_leading_zero(text)) {
    error(fmt::format("'{}' has a leading zero, which some readers take for octal", shortened(text)));
    return range.otherwise;
  }
  const auto value = plain_number(text);
  if (node_->quoted || !value) {
    expected("expected a number");
    return range.otherwise;
  }
  if (*value > range.above && *value >= range.least && *value <= range.most) return *value;
  error(fmt::format("{}, found {}", expected_range(range), shortened(text)));
  return range.otherwise;
}

double YamlReader::quantity(Dimension dimension, QuantityRange range) const {
  if (node_ == nullptr) return range.otherwise;
  const auto value = node_->kind == YamlKind::scalar ? parse_quantity(node_->text, dimension) : std::nullopt;
  if (!value) {
    expected(expectation(dimension));
    return range.otherwise;
  }
  if (std::string problem = quantity_problem(*value, dimension, shortened(node_->text), range.zero_allowed);
      !problem.empty()) {
    error(std::move(problem));
    return range.otherwise;
  }
  if (*value > range.most) {
    error(fmt::format("must be at most {}, found {}", format_quantity(range.most, dimension), shortened(node_->text)));
    return range.otherwise;
  }
  return *value;
}

std::size_t YamlReader::word_index(const std::vector<std::string>& names) const {
  if (!expect(YamlKind::scalar, "one of " + quoted_list(names))) return names.size();
  const auto found = std::find(names.begin(), names.end(), node_->text);
  if (found == names.end()) {
    const std::string guess = suggestion(node_->text, names);
    error(fmt::format("unknown word '{}' (one of {}){}", shortened(node_->text), quoted_list(names), guess));
  }
  return static_cast<std::size_t>(found - names.begin());
}

void YamlReader::unknown_word(std::string_view what, std::string_view word,
                              const std::vector<std::string>& known) const {
  error(fmt::format("unknown {} '{}'{}", what, shortened(std::string(word)), suggestion(word, known)));
}

void YamlReader::exactly_one_of(const std::vector<std::string>& keys) const {
  if (!expect(YamlKind::map, "a map")) return;
  std::vector<std::string> present_keys;
  for (const std::string& key : keys) {
    if (optional(key)) present_keys.push_back(key);
  }
  if (present_keys.empty()) error(fmt::format("needs one of the keys {}", quoted_list(keys)));
  if (present_keys.size() > 1) {
    optional(present_keys[1]).error(fmt::format("cannot be given together with '{}'", present_keys[0]));
  }
}

}  // namespace tandem
