#include "topologies/base/xml_checks.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr int kDeepestXml = 512;

// Stops at the first element that no reader should see.
struct Inspector : pugi::xml_tree_walker {
  bool for_each(pugi::xml_node& node) override {
    if (depth() > kDeepestXml) problem = "nested more than 512 levels deep";
    for (auto one = node.first_attribute(); one && problem.empty(); one = one.next_attribute()) {
      for (auto other = one.next_attribute(); other; other = other.next_attribute()) {
        if (std::string_view(one.name()) == other.name())
          problem = std::string("a second attribute '") + one.name() + "'";
      }
    }
    place = node;
    return problem.empty();
  }
  pugi::xml_node place;
  std::string problem;
};

}  // namespace

void check_xml(std::string_view text, const std::string& file, pugi::xml_document& document, bool comments) {
  const unsigned how = pugi::parse_default | (comments ? pugi::parse_comments : 0U);
  const auto result = document.load_buffer(text.data(), text.size(), how, pugi::encoding_utf8);
  if (!result) {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, result.offset));
    throw InputError({problem_at(file, place_in(text, offset), std::string("not valid XML: ") + result.description())});
  }
  if (const std::size_t entity = text.find("<!ENTITY"); entity != std::string_view::npos) {
    throw InputError({problem_at(file, place_in(text, entity), "declares entities, which are not read")});
  }
  Inspector inspector;
  document.traverse(inspector);
  if (inspector.problem.empty()) return;
  throw InputError({problem_at(file, XmlPlaces(text).of(inspector.place), inspector.problem, inspector.place.name())});
}

std::string root_element(std::string_view text) {
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const std::string_view rest = text.substr(at);
    const std::string_view end = rest.starts_with("<!--") ? "-->" : rest.starts_with("<?") ? "?>" : "";
    if (!end.empty()) {
      const std::size_t close = rest.find(end);
      if (close == std::string_view::npos) return "";
      at += close;
      continue;
    }
    if (rest.starts_with("<!")) {
      const std::size_t close = rest.find_first_of("[>");
      if (close == std::string_view::npos) return "";
      const std::size_t inner = rest[close] == '[' ? rest.find(']', close) : close;
      if (inner == std::string_view::npos) return "";
      at += inner;
      continue;
    }
    return std::string(rest.substr(1, rest.find_first_of(" \t\r\n/>", 1) - 1));
  }
  return "";
}

XmlPlaces::XmlPlaces(std::string_view text) : text_(text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(i + 1);
  }
}

FilePlace XmlPlaces::at(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::size_t>(after - line_starts_.begin());
  return {.line = static_cast<int>(line), .column = static_cast<int>(offset - line_starts_[line - 1]) + 1};
}

FilePlace XmlPlaces::of(const pugi::xml_node& element, std::string_view attribute) const {
  // The offset is that of the name; the element begins with the '<' before it.
  const auto name = static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, element.offset_debug()));
  if (attribute.empty() || !element.attribute(std::string(attribute).c_str())) return at(name - 1);
  const std::string_view tag = text_.substr(name, text_.find('>', name) - name);
  for (std::size_t found = tag.find(attribute); found != std::string_view::npos;
       found = tag.find(attribute, found + 1)) {
    const char after = found + attribute.size() < tag.size() ? tag[found + attribute.size()] : '\0';
    const bool begins = found > 0 && (tag[found - 1] == ' ' || tag[found - 1] == '\t' || tag[found - 1] == '\n');
    if (begins && (after == '=' || after == ' ')) return at(name + found);
  }
  return at(name - 1);
}

}  // namespace tandem
