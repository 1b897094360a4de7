// A document of Tandem as one HTML page that needs nothing else: no network, no script to be complete, the same bytes
// for the same document. The page carries the document, so that whatever reads a report reads the page too.
//
// Kinds: those of run, compare, check in each of its modes, suites of checks, sweep and history. The pictures are those
// of charts.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem {

// `file` is the document's name in messages. Throws InputError for a document of a kind without a page, and for what
// the readers of its kind refuse.
// `offers_trace`: the page is served beside "trace.json" and has a button that opens it in Perfetto.
std::string page_of(const nlohmann::ordered_json& document, const std::string& file, bool offers_trace = false);

}  // namespace tandem
