// Makes an HTML page from a document of Tandem. The page needs no network, is complete without a script, and has the
// same bytes for the same document. It is for people: no command reads it back. A page has at most 1 MB, and says in
// words what it had no room for.
//
// Kinds: those of run, compare, check in each of its modes, suites of checks, sweep, history, plan and blame. The
// pictures are those of charts.h.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/base/json_document.h"

namespace tandem {

// How many launches of a history a page shows at most, of all series together.
inline constexpr std::size_t kMostLaunchesOfPage = 1000;

// Returns the page of a document. `origin` is where the document was read from, for messages. With `offers_trace`, the
// page is served beside "trace.json" and has a button that opens it in Perfetto. Throws InputError for a document of a
// kind without a page, and for what the readers of its kind refuse.
std::string page_of(const nlohmann::ordered_json& document, const JsonOrigin& origin, bool offers_trace = false);

}  // namespace tandem
