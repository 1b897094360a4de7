#include "reports/pages/page.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "reports/json_fields.h"
#include "reports/pages/assets.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using pages::Content;
using pages::Json;

struct Kind {
  const char* name;
  Content (*content)(const Json& document, const std::string& file);
};
constexpr std::array kKinds{Kind{"report", pages::run_content},
                            Kind{"comparison", pages::comparison_content},
                            Kind{"check", pages::check_content},
                            Kind{"paired_check", pages::paired_check_content},
                            Kind{"history_check", pages::history_check_content},
                            Kind{"suite", pages::suite_content},
                            Kind{"sweep", pages::sweep_content},
                            Kind{"history", pages::history_content}};
// Returns the document without any character that could end its element: "<" occurs only in strings, where it can be
// escaped.
std::string embedded(const Json& document) {
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

// Nothing is allowed but the page's own style and scripts.
std::string content_policy(bool offers_trace) {
  std::string scripts;
  for (const pages::Asset& script : pages::scripts()) scripts += fmt::format(" 'sha256-{}'", script.sha256_base64);
  return fmt::format("default-src 'none'; style-src 'sha256-{}'; script-src{}; base-uri 'none'; form-action 'none'{}",
                     pages::style().sha256_base64, scripts, offers_trace ? "; connect-src 'self'" : "");
}

// Fills for print in black and white.
constexpr std::string_view kPatterns = R"(<svg width="0" height="0" aria-hidden="true"><defs>
<pattern id="p-update" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="4" fill="#fff"/><path d="M0 4L4 0" stroke="#000"/></pattern>
<pattern id="p-input" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="4" fill="#fff"/><circle cx="2" cy="2" r="1" fill="#000"/></pattern>
<pattern id="p-communication" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#fff"/><path d="M0 0L5 5M0 5L5 0" stroke="#000" stroke-width=".8"/></pattern>
<pattern id="p-other" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="4" fill="#fff"/><path d="M0 2H4" stroke="#000"/></pattern>
</defs></svg>
)";

std::string head(const Content& content, bool offers_trace) {
  return fmt::format(
      "{}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{} - Tandem</title>\n<style>{}</style>\n</head>\n",
      kPageBegin, content_policy(offers_trace), pages::escaped(content.heading.title), pages::style().text);
}

std::string body(const Content& content, bool offers_trace) {
  const pages::Heading& heading = content.heading;
  std::string text = fmt::format("<body>\n{}<header>\n<h1>{}</h1>\n<p class=\"origin\">{}</p>\n", kPatterns,
                                 pages::escaped(heading.title), pages::escaped(heading.origin));
  if (!heading.verdict.empty()) {
    text += fmt::format("<p class=\"verdict {}\">{}</p>\n", heading.verdict_class, pages::escaped(heading.verdict));
  }
  if (offers_trace) text += "<p><button type=\"button\" id=\"open-trace\">Open the trace in Perfetto</button></p>\n";
  return text + "</header>\n<main>\n" + content.sections + "</main>\n";
}

}  // namespace

std::string page_of(const nlohmann::ordered_json& document, const std::string& file, bool offers_trace) {
  const std::string kind =
      document.is_object() && document.contains("kind") && document["kind"].is_string() ? document["kind"] : "";
  for (const Kind& known : kKinds) {
    if (known.name != kind) continue;
    const Content content = known.content(document, file);
    std::string page = head(content, offers_trace) + body(content, offers_trace);
    page += fmt::format("{}{}{}\n", kPageDocumentBegin, embedded(content.shortened ? *content.shortened : document),
                        kPageDocumentEnd);
    for (const pages::Asset& script : pages::scripts()) {
      page += fmt::format("<script>{}{}\n", script.text, kPageDocumentEnd);
    }
    return page + "</body>\n</html>\n";
  }
  std::vector<std::string> names;
  for (const Kind& known : kKinds) names.emplace_back(known.name);
  throw InputError({{.file = file,
                     .path = "kind",
                     .message = fmt::format("is '{}', of which there is no page; those with pages: {}", kind,
                                            fmt::join(names, ", "))}});
}

}  // namespace tandem
