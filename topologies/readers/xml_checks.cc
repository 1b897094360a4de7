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

struct DepthWalker : pugi::xml_tree_walker {
  bool for_each(pugi::xml_node& node) override {
    if (depth() <= kDeepestXml) return true;
    deepest = node;
    return false;
  }
  pugi::xml_node deepest;
};

}  // namespace

void check_xml(std::string_view text, const std::string& file, pugi::xml_document& document) {
  const auto result = document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, result.offset));
    throw InputError(
        {Diagnostic{file, line_at(text, offset), 0, "", std::string("not valid XML: ") + result.description()}});
  }
  if (const std::size_t entity = text.find("<!ENTITY"); entity != std::string_view::npos) {
    throw InputError({Diagnostic{file, line_at(text, entity), 0, "", "declares entities, which are not read"}});
  }
  DepthWalker walker;
  document.traverse(walker);
  if (walker.deepest) {
    throw InputError({Diagnostic{file, line_of(text, walker.deepest), 0, "", "nested more than 512 levels deep"}});
  }
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
      const std::size_t inner = rest[close] == '[' ? rest.find("]", close) : close;
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
