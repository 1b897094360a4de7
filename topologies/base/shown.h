// Names and values of files as terminals, logs and CI may show them.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Returns the text as one line of valid UTF-8 that does nothing but show: control characters, line breaks among them,
// and those that turn the direction of a line are written as in C ("\x1b", "\n", "\u202e"), and so are bytes that are
// not UTF-8. Any other text is returned as it is.
std::string shown(std::string_view text);

// Does the same for a text of several lines, of which line breaks and tabs remain. A JSON document stays the same
// document: there, such characters occur only in strings, whose escapes these are.
std::string shown_text(std::string_view text);

// Does the same for what goes to a standard stream. In addition, no line of it is a command to a CI system
// ("::error::", "##[group]", "##vso[...]"): a backslash is put into what would be one.
std::string shown_output(std::string_view text);

// Returns a name as content or as an attribute of XML or HTML: shown(), with entities for & < > " and '.
std::string xml_name(std::string_view text);
// Does the same for a text of several lines.
std::string xml_text(std::string_view text);

}  // namespace tandem
