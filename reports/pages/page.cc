#include "reports/pages/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/pages/assets.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using pages::Content;
using pages::Json;

struct PageKind {
  const char* name;
  Content (*content)(const Json& document, const JsonOrigin& origin);
};
constexpr std::array kKinds{PageKind{"report", pages::run_content},
                            PageKind{"comparison", pages::comparison_content},
                            PageKind{"run_comparison", pages::run_comparison_content},
                            PageKind{"strategy_comparison", pages::strategy_comparison_content},
                            PageKind{"check", pages::check_content},
                            PageKind{"paired_check", pages::paired_check_content},
                            PageKind{"history_check", pages::history_check_content},
                            PageKind{"suite", pages::suite_content},
                            PageKind{"sweep", pages::sweep_content},
                            PageKind{"plan", pages::plan_content},
                            PageKind{"history", pages::history_content},
                            PageKind{"blame", pages::blame_content}};

constexpr std::size_t kMostPageBytes = 1'000'000;
constexpr int kMostHeadingWidth = 300;

// Nothing is allowed but the page's own style and scripts.
std::string content_policy(bool offers_trace) {
  std::string scripts;
  for (const pages::Asset& script : pages::scripts()) scripts += fmt::format(" 'sha256-{}'", script.sha256_base64);
  return fmt::format("default-src 'none'; style-src 'sha256-{}'; script-src{}; base-uri 'none'; form-action 'none'{}",
                     pages::style().sha256_base64, scripts, offers_trace ? "; connect-src 'self'" : "");
}

std::string heading_text(const std::string& text) {
  return pages::escaped(cut_back(text, kMostHeadingWidth));
}

std::string head(const Content& content, bool offers_trace) {
  return fmt::format(
      "{}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{} - Tandem</title>\n<style>{}</style>\n</head>\n",
      kPageBegin, content_policy(offers_trace), heading_text(content.heading.title), pages::style().text);
}

std::string body(const Content& content, std::size_t most, bool offers_trace) {
  const pages::Heading& heading = content.heading;
  std::string text = fmt::format("<body>\n<header>\n<h1>{}</h1>\n<p class=\"origin\">{}</p>\n",
                                 heading_text(heading.title), heading_text(heading.origin));
  if (!heading.verdict.empty()) {
    text += fmt::format("<p class=\"verdict {}\">{}</p>\n", heading.verdict_class, heading_text(heading.verdict));
  }
  if (offers_trace) text += "<p><button type=\"button\" id=\"open-trace\">Open the trace in Perfetto</button></p>\n";
  return text + "</header>\n<main>\n" + pages::sections_that_fit(content.sections, most) + "</main>\n";
}

std::string end_of_page() {
  std::string end;
  for (const pages::Asset& script : pages::scripts()) {
    end += fmt::format("<script>{}</script>\n", script.text);
  }
  return end + "</body>\n</html>\n";
}

std::string whole_page(const Content& content, bool offers_trace) {
  constexpr std::size_t kRoomForRest = 8'000;  // of the body
  const std::string begin = head(content, offers_trace), end = end_of_page();
  const std::size_t for_sections = kMostPageBytes - begin.size() - end.size() - kRoomForRest;
  return begin + body(content, for_sections, offers_trace) + end;
}

}  // namespace

std::string page_of(const nlohmann::ordered_json& document, const JsonOrigin& origin, bool offers_trace) {
  const std::string kind =
      document.is_object() && document.contains("kind") && document["kind"].is_string() ? document["kind"] : "";
  for (const PageKind& known : kKinds) {
    if (known.name != kind) continue;
    return whole_page(known.content(document, origin), offers_trace);
  }
  std::vector<std::string> names;
  for (const PageKind& known : kKinds) names.emplace_back(known.name);
  refuse_kind(document, origin, fmt::format("of which there is no page; those with pages: {}", fmt::join(names, ", ")));
}

}  // namespace tandem
