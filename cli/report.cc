#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "cli/serve.h"
#include "reports/base/json_fields.h"
#include "reports/pages/page.h"
#include "reports/run/report_json.h"
#include "reports/stored_text.h"
#include "topologies/base/strict_yaml.h"  // read_input_file

namespace tandem {
namespace {

struct ReportFlags {
  CommonOptions common;
  std::vector<std::string> files;
  std::string trace;
  std::optional<int> port;  // to serve on
  bool all = false;
};

struct Stored {
  JsonOrigin origin;
  nlohmann::ordered_json document;
};

Stored stored_document(const std::string& file) {
  JsonOrigin origin(file, read_input_file(file, kMostDocumentBytes));
  nlohmann::ordered_json document = origin.parse();
  const auto kind = document.is_object() ? document.find("kind") : document.end();
  const bool is_report = kind != document.end() && *kind == "report";
  if (is_report) check_parts_add_up(document, origin);
  return {std::move(origin), std::move(document)};
}

// A trace may have any size, and is read part by part while it is sent.
void check_readable(const std::string& file) {
  std::error_code ignored;
  const auto refuse = [&](const char* message) { throw InputError({{.file = file, .path = "", .message = message}}); };
  if (!std::filesystem::exists(file, ignored)) refuse("no such file");
  if (!std::filesystem::is_regular_file(file, ignored)) refuse("is no file with a trace");
  if (!std::ifstream(file)) refuse("cannot be opened");
}

int serve_page(const ReportFlags& flags) {
  const Stored stored = stored_document(flags.files.front());
  if (!flags.trace.empty()) check_readable(flags.trace);
  const Served served{.page = page_of(stored.document, stored.origin, !flags.trace.empty()), .trace_file = flags.trace};
  serve(served, *flags.port,
        [](const std::string& address) { fmt::print(stderr, "{} shows it; Ctrl-C ends\n", address); });
  return kOk;
}

int show_reports(const ReportFlags& flags) {
  if (flags.port) return serve_page(flags);
  const Output output(flags.common);
  std::string text;
  for (const std::string& file : flags.files) {
    const auto [origin, document] = stored_document(file);
    output.write_page(document, origin);
    if (output.json()) {
      text += json_text(document);
    } else if (!output.wants_page()) {
      text += (text.empty() ? "" : "\n") + stored_text(document, origin, flags.all);
    }
  }
  if (!text.empty()) output.write_text(text);
  return kOk;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("report", "Show stored results again, or write their page");
  auto flags = std::make_shared<ReportFlags>();
  command->add_option("files", flags->files, "Documents of --json")->required();
  command->add_flag("--all", flags->all, "Show every collective, part and point, however many there are");
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  CLI::Option* const serve =
      command->add_option("--serve", flags->port, "Show the page on this port of 127.0.0.1, 0 for any, until Ctrl-C")
          ->check(CLI::Range(0, 65535));
  command->add_option("--trace", flags->trace, "With --serve: a trace that a button of the page opens in Perfetto")
      ->needs(serve);
  for (const char* const other : {"--html", "--json", "--output", "--all"}) serve->excludes(command->get_option(other));
  command->callback([flags, &action] {
    const bool is_one = !flags->common.html.empty() || flags->port || flags->common.json;
    if (is_one && flags->files.size() > 1) {
      throw CLI::ValidationError("files", "a page and --json are of one document");
    }
    action = [flags] { return show_reports(*flags); };
  });
}

}  // namespace tandem
