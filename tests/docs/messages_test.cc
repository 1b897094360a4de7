// Keys that messages tell people to write are keys that a reader asks for.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string file_text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> source_files() {
  std::vector<fs::path> found;
  for (const char* folder : {"cli", "engine", "reports", "scenarios", "strategies", "topologies"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(TANDEM_SOURCE_DIR) / folder)) {
      if (entry.path().extension() == ".cc" || entry.path().extension() == ".h") found.push_back(entry.path());
    }
  }
  return found;
}

void add_matches(const std::string& text, const std::regex& expression, std::set<std::string>& found) {
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match) {
    found.insert((*match)[1]);
  }
}

// Adds the words of small letters, digits and _ between the two texts. A regular expression takes minutes for this.
void add_words(const std::string& text, const std::string& before, const std::string& behind,
               std::set<std::string>& found) {
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
    const std::size_t begin = at + before.size();
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", begin);
    if (end != std::string::npos && end > begin && text.compare(end, behind.size(), behind) == 0) {
      found.insert(text.substr(begin, end - begin));
    }
  }
}

// Returns the texts of a source, those that follow each other as one.
std::vector<std::string> texts_in(const std::string& source) {
  static const std::regex kComment("//[^\n]*");
  static const std::regex kText("\"((?:[^\"\\\\\n]|\\\\.)*)\"");
  const std::string code = std::regex_replace(source, kComment, "");
  std::vector<std::string> texts;
  std::ptrdiff_t last = 0;
  for (std::sregex_iterator match(code.begin(), code.end(), kText), end; match != end; ++match) {
    const std::string between =
        code.substr(static_cast<std::size_t>(last), static_cast<std::size_t>(match->position() - last));
    const bool goes_on = !texts.empty() && between.find_first_not_of(" \n") == std::string::npos;
    if (goes_on) texts.back() += (*match)[1];
    if (!goes_on) texts.push_back((*match)[1]);
    last = match->position() + match->length();
  }
  return texts;
}

const std::set<std::string>& known_keys() {
  static const std::set<std::string> kKeys = [] {
    std::set<std::string> keys;
    for (const fs::path& file : source_files()) {
      if (file.string().ends_with("_json.cc")) continue;  // documents that people do not write
      const std::string source = file_text(file);
      for (const char* asks : {"optional(\"", "required(\"", "has(\""}) add_words(source, asks, "\")", keys);
      add_words(source, "{\"", "\", &", keys);
    }
    const std::string schema = file_text(fs::path(TANDEM_SOURCE_DIR) / "scenarios/scenario.schema.json");
    for (const char* opens : {"\": {", "\":{"}) add_words(schema, "\"", opens, keys);
    return keys;
  }();
  return kKeys;
}

// Keys of other programs' files, functions, and words of conditions.
const std::set<std::string>& other_words() {
  static const std::set<std::string> kWords{"and",        "block",  "conf", "make", "md",
                                            "model_type", "tandem", "tree", "yaml"};
  return kWords;
}

// Returns the keys that a message names: `key`, `key: value`, workload.key, "give it key".
std::set<std::string> keys_named_in(const std::string& text) {
  static const std::regex kQuoted("`([a-z_0-9]+)(?::[^`]*)?`");
  static const std::regex kGiven("(?:give|lacks) (?:it |a |an |its )*([a-z]+_[a-z_0-9]+)");
  static const std::regex kPath(
      "\\b(?:workload|strategy|engine|devices|topology|expect|cluster)\\.([a-z_]+(?:\\.[a-z_]+)*)");
  std::set<std::string> named, paths;
  add_matches(text, kQuoted, named);
  add_matches(text, kGiven, named);
  add_matches(text, kPath, paths);
  for (const std::string& path : paths) {
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      named.insert(path.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return named;
}

TEST(Messages, NameKeysThatExist) {
  std::size_t checked = 0;
  for (const fs::path& file : source_files()) {
    for (const std::string& text : texts_in(file_text(file))) {
      if (text.find(' ') == std::string::npos) continue;
      for (const std::string& key : keys_named_in(text)) {
        ++checked;
        EXPECT_TRUE(known_keys().contains(key) || other_words().contains(key))
            << file << ": no reader asks for '" << key << "', which this message names: " << text;
      }
    }
  }
  EXPECT_GT(checked, 40u);
}

TEST(Messages, AKeyThatDoesNotExistIsFound) {
  for (const char* text : {"device model 'x' has no f16 rate: give it peak_flops_per_s for f16 or calibrate it",
                           "write `bandwith: 25GB/s`", "needs workload.batchsize", "set topology.cluster.overides"}) {
    const auto named = keys_named_in(text);
    EXPECT_TRUE(std::any_of(named.begin(), named.end(), [](const auto& key) { return !known_keys().contains(key); }))
        << text;
  }
}

}  // namespace
}  // namespace tandem
