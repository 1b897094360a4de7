// Checks XML before a library that trusts it sees it.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

// Parses the text. Throws InputError when it is not XML, is nested more than 512 levels deep, declares entities, or
// gives an attribute twice. Keeps comments only if asked to.
void check_xml(std::string_view text, const std::string& file, pugi::xml_document& document, bool comments = false);

// Returns the name of the first element, such as "system" or "platform"; empty if there is none.
std::string root_element(std::string_view text);

// Finds what was parsed in its text, which must outlive this.
class XmlPlaces {
 public:
  explicit XmlPlaces(std::string_view text);
  // Returns where an element begins, or, where it has the attribute, where that does.
  FilePlace of(const pugi::xml_node& element, std::string_view attribute = "") const;

 private:
  FilePlace at(std::size_t offset) const;
  std::string_view text_;
  std::vector<std::size_t> line_starts_{0};
};

}  // namespace tandem
