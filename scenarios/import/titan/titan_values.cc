#include "scenarios/import/titan/titan_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/python/titan_python.h"

namespace tandem {
namespace {

constexpr std::int64_t kBeginningBytes = std::int64_t{1} << 16;

// Tables of torchtitan's JobConfig that decide what a step does.
constexpr std::array<std::string_view, 10> kTitanSections{
    "model",     "training", "parallelism", "activation_checkpoint", "compile",
    "optimizer", "float8",   "mx",          "experimental",          "debug"};

toml::table parse_titan_toml(const InputFile& file) {
  try {
    return toml::parse(file.text(), file.name());
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    throw InputError(
        {problem_at(file.name(), {.line = static_cast<int>(at.line), .column = static_cast<int>(at.column)},
                    std::string(error.description()))});
  }
}

// Numbers and texts of Python that TOML does not have, and keys that are given twice.
toml::table parse_titan_python(const TitanPython& python, const std::string& file) {
  try {
    return toml::parse(python.toml);
  } catch (const toml::parse_error& error) {
    const std::size_t line = std::clamp<std::size_t>(error.source().begin.line, 1, python.places.size()) - 1;
    const TitanPython::Place& place = python.places.at(line);
    throw InputError({problem_at(file, {.line = place.line, .column = place.column},
                                 fmt::format("cannot be read: {}", error.description()))});
  }
}

std::string shown_node(const toml::node& node) {
  if (const auto value = node.value_exact<bool>()) return *value ? "true" : "false";
  if (const auto value = node.value_exact<std::int64_t>()) return std::to_string(*value);
  if (const auto value = node.value_exact<double>()) return fmt::format("{}", *value);
  if (const auto value = node.value_exact<std::string>()) return *value;
  if (const toml::array* const list = node.as_array()) {
    std::vector<std::string> items;
    for (const toml::node& item : *list) items.push_back(shown_node(item));
    return fmt::format("{}", fmt::join(items, ", "));
  }
  return "(...)";
}

}  // namespace

struct TitanValues::Document {
  std::string file;
  std::optional<TitanPython> python{};  // of a file that is no TOML
  toml::table root{};

  FilePlace place_of(const toml::node& node) const;
  void check_sections() const;
  void check_is_literal(std::string_view key) const;
  const toml::node* find(std::string_view key) const;
  void add_places(const toml::table& table, const std::string& before, std::map<std::string, FilePlace>& places) const;
};

FilePlace TitanValues::Document::place_of(const toml::node& node) const {
  const toml::source_position at = node.source().begin;
  if (!python) return {.line = static_cast<int>(at.line), .column = static_cast<int>(at.column)};
  const TitanPython::Place& place = python->places.at(static_cast<std::size_t>(at.line) - 1);
  return {.line = place.line, .column = place.column};
}

void TitanValues::Document::check_sections() const {
  for (const std::string_view section : kTitanSections) {
    const toml::node* const node = root.get(section);
    if (node == nullptr || node->is_table()) continue;
    throw InputError({problem_at(file, place_of(*node), fmt::format("expected a section [{}] with keys", section),
                                 std::string(section))});
  }
}

// Fails where the value is written as Python that only a program can tell.
void TitanValues::Document::check_is_literal(std::string_view key) const {
  if (!python) return;
  for (const std::string_view path : {key.substr(0, key.rfind('.')), key}) {
    const auto unread = python->unread.find(std::string(path));
    if (unread == python->unread.end()) continue;
    const auto [line, column] = unread->second;
    throw InputError({problem_at(file, {.line = line, .column = column},
                                 "is no literal value; put the number or text in its place", std::string(path))});
  }
}

const toml::node* TitanValues::Document::find(std::string_view key) const {
  check_is_literal(key);
  return root.at_path(key).node();
}

void TitanValues::Document::add_places(const toml::table& table, const std::string& before,
                                       std::map<std::string, FilePlace>& places) const {
  for (const auto& [key, node] : table) {
    const std::string path = before + std::string(key.str());
    if (const toml::table* const inner = node.as_table()) {
      add_places(*inner, path + ".", places);
    } else {
      places[path] = place_of(node);
    }
  }
}

TitanValues::TitanValues(const InputFile& file, const std::string& name) {
  auto document = std::make_shared<Document>(Document{.file = file.name()});
  if (is_titan_python(beginning_of(file, kBeginningBytes))) {
    document->python = read_titan_python(file, name);
    document->root = parse_titan_python(*document->python, document->file);
  } else if (!name.empty()) {
    throw InputError(
        {problem_at(document->file, kBeginning, "has one configuration; --config is for Python files of torchtitan")});
  } else {
    document->root = parse_titan_toml(file);
  }
  document->check_sections();
  document->add_places(document->root, "", places_);
  document_ = document;
}

std::vector<std::string> TitanValues::unread() const {
  if (!document_->python) return {};
  std::vector<std::string> all = document_->python->left_out;
  for (const auto& [key, place] : document_->python->unread) {
    all.push_back(fmt::format("{}:{}: {} is no literal value", place.line, place.column, key));
  }
  return all;
}

void TitanValues::fail(std::string_view key, const std::string& message) const {
  const toml::node* node = document_->find(key);
  if (node == nullptr) node = document_->find(key.substr(0, key.rfind('.')));
  throw InputError({problem_at(document_->file, node == nullptr ? kBeginning : document_->place_of(*node), message,
                               std::string(key))});
}

std::int64_t TitanValues::whole(std::string_view key, std::int64_t usual, std::int64_t least, std::int64_t most) const {
  read_.emplace(key);
  const toml::node* const node = document_->find(key);
  if (node == nullptr) return usual;
  const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
  if (!value) fail(key, "expected a whole number");
  if (*value >= least && *value <= most) return *value;
  fail(key, fmt::format("must be from {} to {}, found {}", least, most, *value));
}

double TitanValues::number(std::string_view key, double usual) const {
  read_.emplace(key);
  const toml::node* const node = document_->find(key);
  if (node == nullptr) return usual;
  const std::optional<double> value = node->value<double>();
  if (!value) fail(key, "expected a number");
  return *value;
}

std::string TitanValues::text(std::string_view key, std::string_view usual) const {
  read_.emplace(key);
  const toml::node* const node = document_->find(key);
  if (node == nullptr) return std::string(usual);
  const std::optional<std::string> value = node->value_exact<std::string>();
  if (!value) fail(key, "expected a text");
  return *value;
}

bool TitanValues::is_on(std::string_view key, bool usual) const {
  read_.emplace(key);
  const toml::node* const node = document_->find(key);
  if (node == nullptr) return usual;
  if (const auto value = node->value_exact<bool>()) return *value;
  const auto quoted = node->value_exact<std::string>();
  fail(key, quoted ? fmt::format("expected true or false, without quotes, found '{}'", *quoted)
                   : fmt::format("expected true or false, found {}", shown_node(*node)));
}

std::vector<std::string> TitanValues::texts(std::string_view key) const {
  read_.emplace(key);
  const toml::node* const node = document_->find(key);
  if (node == nullptr) return {};
  const toml::array* const list = node->as_array();
  std::vector<std::string> all;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (const auto item = list->get(i)->value_exact<std::string>()) all.push_back(*item);
  }
  if (list == nullptr || all.size() < list->size()) fail(key, "expected a list of texts");
  return all;
}

std::optional<std::string> TitanValues::shown(std::string_view key) const {
  read_.emplace(key);
  const toml::node* const node = document_->find(key);
  if (node == nullptr) return std::nullopt;
  return shown_node(*node);
}

}  // namespace tandem
