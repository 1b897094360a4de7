// Where results go: stdout, or the file of -o. Everything else goes to stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "cli/base/common_options.h"
#include "reports/base/json_document.h"

namespace tandem {

enum class Color : std::uint8_t { red, green, yellow };

// Whether `stream` (std::cout or std::cerr) wants colors: a flag beats FORCE_COLOR, which beats NO_COLOR and
// TERM=dumb, which beat the terminal.
bool wants_color(const std::ostream& stream, bool no_color);
std::string colored(std::string_view text, Color color, const std::ostream& stream, bool no_color);

class Output {
 public:
  // Throws Error when the file cannot be written: before a long run rather than after it.
  explicit Output(const CommonOptions& options);

  bool json() const { return options_.json; }
  // All write nothing if a page takes their place on the standard output. A text is for people: shown_output().
  void write_text(std::string_view text) const;
  // Writes as it is what another program reads, or what is shown_output() with colors.
  void write_document(std::string_view text) const;
  void write_document(const std::function<void(std::ostream&)>& write) const;  // what may be too large for memory
  void write_json(const nlohmann::ordered_json& document) const;
  bool wants_page() const { return !options_.html.empty(); }
  // Writes the document as a page where one is wanted. `name` is the document's in messages.
  void write_page(const nlohmann::ordered_json& document, const JsonOrigin& origin = "the result") const;

 private:
  CommonOptions options_;
};

// Returns whether a page is wanted on the standard output, which leaves no room for the result's text or document
// there.
bool is_page_alone(const CommonOptions& options);

// These throw Error that names the file and the reason. A file is replaced as a whole (topologies/base/whole_file.h).
// They do not throw for the standard output, so that what else a command writes is written although nobody reads its
// result; stdout_problem() then says why.
void check_writable(const std::string& file);
void write_file(const std::string& file, std::string_view text);
void write_file(const std::string& file, const std::function<void(std::ostream&)>& write);

// Returns why the standard output could not be written so far, or "".
std::string stdout_problem();

}  // namespace tandem
