// The style and the scripts of a page, which the build takes from page.css, page.js and, where it is installed,
// Dygraphs.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tandem::pages {

struct Asset {
  std::string_view text;
  std::string sha256_base64;  // the form that a content policy has
};

const Asset& style();
std::span<const Asset> scripts();  // in the order of their elements
// Returns whether pictures with two axes can be zoomed.
bool has_zoom();

}  // namespace tandem::pages
