#include "topologies/readers/nccl/nccl_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tandem::nccl {
namespace {

constexpr int kMostProblems = 100;       // reported of one file
constexpr std::size_t kMostNotes = 200;  // different ones

bool is_among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::optional<std::uint64_t> bus_number(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ':' && c != '.') digits += c;
  }
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.empty() || result.ec != std::errc{} || result.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Document::Document(std::string_view text, std::string file, Diagnostics& diagnostics)
    : places_(text), file_(std::move(file)), diagnostics_(diagnostics) {
  check_xml(text, file_, document_, true);
}

// Returns a path such as "cpu[1].pci[0].gpu". The numbers tell equal siblings apart, and count from 0.
std::string Document::path_of(const pugi::xml_node& element) {
  const pugi::xml_node parent = element.parent();
  if (!parent || parent.type() != pugi::node_element) return "";
  std::size_t before = 0;
  std::size_t same = 0;
  bool seen = false;
  for (const pugi::xml_node& sibling : parent.children(element.name())) {
    seen = seen || sibling == element;
    before += seen ? 0 : 1;
    ++same;
  }
  std::string path = path_of(parent);
  if (!path.empty()) path += '.';
  path += element.name();
  return same > 1 ? path + "[" + std::to_string(before) + "]" : path;
}

void Document::problem(const pugi::xml_node& element, const std::string& message, std::string_view attribute) {
  if (++problems_ > kMostProblems) return;
  std::string path = path_of(element);
  if (!attribute.empty() && element.attribute(std::string(attribute).c_str())) {
    path += (path.empty() ? "" : ".") + std::string(attribute);
  }
  diagnostics_.add(problem_at(file_, places_.of(element, attribute), message, std::move(path)));
}

std::string Document::required_text(const pugi::xml_node& element, const char* attribute) {
  const pugi::xml_attribute value = element.attribute(attribute);
  if (!value) problem(element, std::string("missing attribute '") + attribute + "'");
  return value.value();
}

std::int64_t Document::required_number(const pugi::xml_node& element, const char* attribute, std::int64_t otherwise) {
  if (!element.attribute(attribute)) {
    problem(element, std::string("missing attribute '") + attribute + "'");
    return otherwise;
  }
  return number(element, attribute, otherwise);
}

// Reads numbers as C's strtol with base 0, which NCCL uses: decimal, or hex after 0x.
std::int64_t Document::number(const pugi::xml_node& element, const char* attribute, std::int64_t otherwise) {
  const pugi::xml_attribute found = element.attribute(attribute);
  if (!found) return otherwise;
  const std::string_view text = found.value();
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = text.substr(is_hex ? 2 : 0);
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hex ? 16 : 10);
  if (result.ec == std::errc{} && result.ptr == digits.data() + digits.size()) return value;
  problem(element, "expected a whole number, found '" + shortened(std::string(text)) + "'", attribute);
  return otherwise;
}

double Document::real(const pugi::xml_node& element, const char* attribute, double otherwise) {
  const pugi::xml_attribute found = element.attribute(attribute);
  if (!found) return otherwise;
  const std::string_view text = found.value();
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc{} && result.ptr == text.data() + text.size() && std::isfinite(value)) return value;
  problem(element, "expected a number, found '" + shortened(std::string(text)) + "'", attribute);
  return otherwise;
}

std::int64_t Document::count(const pugi::xml_node& element, const char* attribute, std::int64_t otherwise,
                             std::int64_t least, std::int64_t most) {
  const std::int64_t value = number(element, attribute, otherwise);
  if (value >= least && value <= most) return value;
  problem(element, fmt::format("must be from {} to {}, found {}", least, most, value), attribute);
  return otherwise;
}

void Document::check_quantity(const pugi::xml_node& element, const char* attribute, double value, Dimension dimension) {
  const std::string written = shortened(element.attribute(attribute).value());
  if (const std::string wrong = quantity_problem(value, dimension, written, true); !wrong.empty()) {
    problem(element, wrong, attribute);
  }
}

std::string Document::comments() const {
  std::string text;
  for (const pugi::xml_node& node : document_.children()) {
    if (node.type() == pugi::node_comment) text += std::string(node.value()) + "\n";
  }
  return text;
}

std::optional<unsigned> Document::id(const pugi::xml_node& element, const char* attribute) const {
  std::string_view text = element.attribute(attribute).value();
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  unsigned value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

void Document::note(const pugi::xml_node& element, const std::string& message) {
  for (Note& known : notes_) {
    if (known.text != message) continue;
    ++known.count;
    return;
  }
  if (notes_.size() >= kMostNotes) return;
  notes_.push_back({message, element ? places_.of(element).line : 0, 1});
}

void Document::note(const std::string& message) {
  note(pugi::xml_node(), message);
}

void Document::note_unknown(const pugi::xml_node& element, std::initializer_list<std::string_view> attributes,
                            std::initializer_list<std::string_view> children) {
  for (const pugi::xml_attribute& attribute : element.attributes()) {
    if (is_among(attribute.name(), attributes)) continue;
    note(element, std::string("unknown attribute '") + attribute.name() + "' of " + element.name() + ", left out");
  }
  for (const pugi::xml_node& child : element.children()) {
    if (child.type() != pugi::node_element || is_among(child.name(), children)) continue;
    note(child, std::string("unknown element '") + child.name() + "' in " + element.name() + ", left out");
  }
}

std::vector<std::string> Document::notes() const {
  std::vector<std::string> texts;
  for (const Note& one : notes_) {
    std::string text = file_ + (one.line > 0 ? ":" + std::to_string(one.line) : "") + ": " + one.text;
    if (one.count > 1) text += " (" + std::to_string(one.count) + " times)";
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace tandem::nccl
