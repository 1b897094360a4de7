// Checks XML before a library that trusts it sees it.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace tandem {

// Parses the text. Throws InputError when it is not XML, is nested more than 512 levels deep, declares entities, or
// gives an attribute twice. Keeps comments only if asked to.
void check_xml(std::string_view text, const std::string& file, pugi::xml_document& document, bool comments = false);

// Returns the name of the first element, such as "system" or "platform"; empty if there is none.
std::string root_element(std::string_view text);

// Returns the line of an element, from 1.
int line_of(std::string_view text, const pugi::xml_node& element);

}  // namespace tandem
