#include "reports/pages/carried_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/json_fields.h"
#include "reports/text_table.h"
#include "topologies/base/shown.h"

namespace tandem::pages {
namespace {

using Carried = nlohmann::ordered_json;
using LeftOut = std::map<std::string, std::size_t>;  // by path, without places in lists

// Returns the document without any character that could end its element: "<" occurs only in strings, where it can be
// escaped.
std::string embedded(const Carried& document) {
  const std::string text = shown_text(document.dump(-1, ' ', false, Carried::error_handler_t::replace));
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string path_to(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::size_t entries_in(const Carried& value) {
  return value.is_array() ? value.size() : 1;
}

// Removes the field wherever it is.
void remove_everywhere(Carried& value, const std::string& field, const std::string& path, LeftOut& left_out) {
  if (value.is_object()) {
    if (const auto found = value.find(field); found != value.end()) {
      left_out[path_to(path, field)] += entries_in(*found);
      value.erase(field);
    }
    for (auto& [key, part] : value.items()) remove_everywhere(part, field, path_to(path, key), left_out);
  } else if (value.is_array()) {
    for (Carried& part : value) remove_everywhere(part, field, path, left_out);
  }
}

// Keeps the first `most` entries of each list, and as much of each text as a page shows.
void cut(Carried& value, std::size_t most, const std::string& path, LeftOut& left_out) {
  constexpr int kMostWidth = 2000;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (display_width(text) <= kMostWidth) return;
    value = cut_back(text, kMostWidth);
    ++left_out[path];
  } else if (value.is_object()) {
    for (auto& [key, part] : value.items()) cut(part, most, path_to(path, key), left_out);
  } else if (value.is_array()) {
    if (value.size() > most) {
      left_out[path] += value.size() - most;
      value.erase(value.begin() + static_cast<std::ptrdiff_t>(most), value.end());
    }
    for (Carried& part : value) cut(part, most, path, left_out);
  }
}

CarriedDocument finished(Carried document, const LeftOut& left_out) {
  std::vector<std::string> parts;
  for (const auto& [path, count] : left_out) {
    document[std::string(kLeftOut)][path] = count;
    parts.push_back(fmt::format("{} of {}", count, path));
  }
  return {.text = embedded(document),
          .left_out = fmt::format("The page carries its document without {}; the document of --json has them.",
                                  fmt::join(parts, ", "))};
}

}  // namespace

// Details come first, of which the page has pictures. Other lists are cut to the same length, so that those that belong
// together still do.
CarriedDocument carried_document(const nlohmann::ordered_json& document, std::size_t most) {
  if (std::string text = embedded(document); text.size() <= most) return {.text = std::move(text), .left_out = ""};
  Carried shorter = document;
  LeftOut left_out;
  for (const char* const field : {"check", "details", "ranks"}) {
    remove_everywhere(shorter, field, "", left_out);
    if (CarriedDocument carried = finished(shorter, left_out); carried.text.size() <= most) return carried;
  }
  constexpr std::size_t kMostEntries = 1024;
  for (std::size_t entries = kMostEntries; entries > 0; entries /= 2) {
    cut(shorter, entries, "", left_out);
    if (CarriedDocument carried = finished(shorter, left_out); carried.text.size() <= most) return carried;
  }
  Carried least = Carried::object();
  for (const char* const field : {"schema_version", "kind", "tandem_version"}) {
    if (document.contains(field)) least[field] = shorter[field];
  }
  return finished(std::move(least), {{"everything else", 1}});
}

}  // namespace tandem::pages
