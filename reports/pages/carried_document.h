// The document that a page carries, cut where it is too large for a page.
//
// What is cut is named in `left_out`, by path: {"collectives": 300} says that 300 entries are missing. Such a document
// still has a text and a page, but no other command takes it for the whole (reports/report_json.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::pages {

struct CarriedDocument {
  std::string text;      // as it stands in the page
  std::string left_out;  // a sentence for the reader; "" if it is whole
};

// `most`: bytes of the text.
CarriedDocument carried_document(const nlohmann::ordered_json& document, std::size_t most);

}  // namespace tandem::pages
