#include "topologies/readers/xml_checks.h"

#include <algorithm>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr int kDeepestXml = 512;

int line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size())), '\n'));
}

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
    const auto offset = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, result.offset)), text.size());
    const std::size_t begin = text.substr(0, offset).rfind('\n') + 1;  // 0 where there is none
    throw InputError({Diagnostic{file, line_at(text, offset), static_cast<int>(offset - begin) + 1, "",
                                 std::string("not valid XML: ") + result.description()}});
  }
  if (const std::size_t entity = text.find("<!ENTITY"); entity != std::string_view::npos) {
    throw InputError({Diagnostic{file, line_at(text, entity), 0, "", "declares entities, which are not read"}});
  }
  Inspector inspector;
  document.traverse(inspector);
  if (inspector.problem.empty()) return;
  throw InputError({Diagnostic{file, line_of(text, inspector.place), 0, inspector.place.name(), inspector.problem}});
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

int line_of(std::string_view text, const pugi::xml_node& element) {
  return line_at(text, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, element.offset_debug())));
}

}  // namespace tandem
