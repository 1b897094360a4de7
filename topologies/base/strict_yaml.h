// Reads YAML (and so JSON) files that people write, strictly, and reports all mistakes of a file together.
//
// A YamlDocument is the parsed file. A YamlReader points at one value in it, converts it, and adds what is
// wrong to a Diagnostics list instead of stopping; the caller reads everything, then throws all of it:
//
//   YamlDocument document = YamlDocument::load("scenario.yaml");   // throws only if nothing can be read
//   Diagnostics problems;
//   YamlReader root(document, problems);
//   const int batch = root.required("batch").integer(1, 65536);            // a missing key is a problem
//   const double size = root.optional("size").quantity(Dimension::bytes, {.otherwise = 64e6});
//   const bool shuffle = root.optional("shuffle").boolean(true);           // absent: true
//   const auto values = root.optional("values").one_of<Values>({{"real", Values::real}, {"none", Values::none}});
//   for (const YamlReader& layer : root.required("layers").list()) names.push_back(layer.required("name").text());
//   for (const auto& [name, model] : root.optional("devices").entries()) read_device(name, model);
//   if (batch % 8 != 0) root.optional("batch").error("must be a multiple of 8");
//   root.finish();                        // keys nobody asked for, anywhere below, with a suggestion
//   problems.throw_if_any();              // InputError: "scenario.yaml:12:9: layers[3].batch: ..."
//
// A value that is wrong or absent reads as `otherwise` (default 0, "", false, the first name, empty), and
// everything below an absent reader is absent too, so that no check is needed on the way.
//
// Refused: duplicate keys, merge keys (<<), keys that are not text, tags, leading zeros and hex numbers,
// booleans other than true and false, NaN and infinities, several documents, more than 64 levels, aliases
// that expand to more than a million values, files above 16 MiB.
//
// Threads: none of this is shared between threads. A YamlDocument must outlive its readers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topologies/base/error.h"
#include "topologies/base/units.h"

namespace tandem {

// The problems found so far, in one or more files.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic) { list_.push_back(std::move(diagnostic)); }
  void add(const Diagnostics& others) { list_.insert(list_.end(), others.list_.begin(), others.list_.end()); }
  bool empty() const { return list_.empty(); }
  // Throws an InputError with the problems, each once, in the order of the file: the first 100, and how many more there
  // are. Returns if there are none.
  void throw_if_any() const;

 private:
  std::vector<Diagnostic> list_;
};

enum class YamlKind : std::uint8_t { null, scalar, list, map };

// One value of a document. Lines and columns count from 1.
struct YamlNode {
  struct Entry {
    std::string key;
    int line = 0;
    int column = 0;
    const YamlNode* value = nullptr;
  };
  YamlKind kind = YamlKind::null;
  bool quoted = false;
  int line = 0;
  int column = 0;
  std::string text{};                    // of a scalar
  std::vector<const YamlNode*> items{};  // of a list
  std::vector<Entry> entries{};          // of a map, in the order of the file, each key once
};

class YamlDocument {
 public:
  // Throws InputError when the file cannot be read or is not YAML.
  static YamlDocument load(const std::filesystem::path& path);
  // The same for text already in memory; `file` is the name used in messages.
  static YamlDocument parse(std::string_view text, std::string file);

  // Returns `base` with other values at some paths. Maps that are missing on the way to a path are made; anything else
  // on the way must be a map (TANDEM_CHECK). The values, which are nodes of `base` or live as long as the result, keep
  // their lines and columns.
  struct Change {
    std::string path;                 // "workload.batch"; see first_key_of()
    const YamlNode* value = nullptr;  // null: the key is left out
  };
  static YamlDocument changed(std::shared_ptr<const YamlDocument> base, const std::vector<Change>& changes);

  // Likewise, with values that are given as text in YAML, in this order; `~` leaves the key out. Problems that readers
  // find in what a setting says are problems of its name, not of the file. Throws InputError for a value that is not
  // YAML and for a path on which there is something else than a map.
  struct Setting {
    std::string name;  // "--set workload.batch=64"
    std::string path;
    std::string value;
  };
  static YamlDocument with_settings(std::shared_ptr<const YamlDocument> base, const std::vector<Setting>& settings);

  YamlDocument(YamlDocument&&) noexcept;
  YamlDocument& operator=(YamlDocument&&) noexcept;
  ~YamlDocument();

  const std::string& file() const { return file_; }
  const YamlNode& root() const { return *root_; }
  // Returns the problem at the line and column of a node, which belongs to the file or to a setting.
  Diagnostic problem_at(int line, int column, std::string path, std::string message) const;
  // Problems of the document itself, such as duplicate keys. YamlReader's constructor reports them.
  const std::vector<Diagnostic>& problems() const { return problems_; }

 private:
  YamlDocument();
  YamlNode& own(const YamlNode& node);  // a copy
  void change(YamlNode& map, std::string_view path, const YamlNode* value);
  void set(const Setting& setting, YamlNode& root);
  friend class YamlBuilder;
  std::shared_ptr<const YamlDocument> base_;  // of a changed document, which refers to its nodes
  std::string file_;
  std::vector<std::unique_ptr<YamlNode>> nodes_;
  const YamlNode* root_ = nullptr;
  std::vector<Diagnostic> problems_;
  std::vector<std::string> settings_;  // names; the nodes of the first have line -1, those of the second -2
};

// The first key of a path, and the path below it. A key with dots is in quotes: `overrides."*.gpu3".slowdown`; it needs
// none if the map has it.
struct PathKey {
  std::string key;
  std::string_view below{};
  bool is_last = true;
};
PathKey first_key_of(std::string_view path, const YamlNode* map);

// Returns the value at a path of maps, or null where there is none.
const YamlNode* node_at(const YamlNode& root, std::string_view path);

// The largest file that people write, and the largest document that Tandem has written and reads again.
inline constexpr std::uintmax_t kMostInputBytes = std::uintmax_t{16} << 20;
inline constexpr std::uintmax_t kMostDocumentBytes = std::uintmax_t{4} << 30;

// Returns the whole text of a file of at most so many bytes. Throws InputError naming the file, which is too large or
// cannot be read.
std::string read_input_file(const std::filesystem::path& path, std::uintmax_t most_bytes = kMostInputBytes);

class YamlReader {
 public:
  YamlReader(const YamlDocument& document, Diagnostics& diagnostics);

  // --- Maps ---
  // Return the value of a key, or an absent reader where there is none. If this is not a map, they report that
  // once and return an absent reader.
  YamlReader required(std::string_view key) const;
  YamlReader optional(std::string_view key) const;
  // Returns all entries of a map with free keys, in the order of the file.
  std::vector<std::pair<std::string, YamlReader>> entries() const;
  bool has(std::string_view key) const;  // asks without marking the key as known
  // Marks these keys as known, and returns whether a map has no others; finish() reports those.
  bool has_only(const std::vector<std::string>& keys) const;
  // Reports the keys nobody asked for in the maps read so far at or below this value.
  void finish() const;

  // --- Lists ---
  std::vector<YamlReader> list() const;

  // --- Scalars ---
  std::string text(std::string_view otherwise = "") const;  // not empty
  bool boolean(bool otherwise = false) const;
  std::int64_t whole_number(std::int64_t least, std::int64_t most, std::int64_t otherwise = 0) const;
  int integer(int least, int most, int otherwise = 0) const {
    return static_cast<int>(whole_number(least, most, otherwise));
  }

  struct Range {
    double above = -std::numeric_limits<double>::infinity();  // excluded
    double least = -std::numeric_limits<double>::infinity();  // included
    double most = std::numeric_limits<double>::infinity();    // included
    double otherwise = 0;
  };
  double number(Range range) const;
  double number() const { return number(Range{}); }
  double number_within(const Limits& limits, double otherwise = 0) const {
    return number({.least = limits.least, .most = limits.most, .otherwise = otherwise});
  }

  // "450GB/s", "1.3us", or a number in the base unit, within limits_of() the dimension or, if `zero_allowed`, 0.
  struct QuantityRange {
    double otherwise = 0;
    bool zero_allowed = false;
    double most = std::numeric_limits<double>::infinity();
  };
  double quantity(Dimension dimension, QuantityRange range) const;
  double quantity(Dimension dimension) const { return quantity(dimension, QuantityRange{}); }

  // Returns what one of a few words means. An absent or unknown word means the first one, or `otherwise`.
  template <typename Enum>
  using Words = std::vector<std::pair<std::string, Enum>>;
  template <typename Enum>
  Enum one_of(const Words<Enum>& words, Enum otherwise) const {
    const std::size_t chosen = word_index(names_of(words));
    return chosen < words.size() ? words[chosen].second : otherwise;
  }
  template <typename Enum>
  Enum one_of(std::initializer_list<std::pair<std::string, Enum>> words, Enum otherwise) const {
    return one_of(Words<Enum>(words), otherwise);
  }
  template <typename Enum>
  Enum one_of(std::initializer_list<std::pair<std::string, Enum>> words) const {
    return one_of(Words<Enum>(words), words.begin()->second);
  }

  // --- Where it is ---
  bool present() const { return node_ != nullptr; }
  explicit operator bool() const { return present(); }
  const YamlNode* node() const { return node_; }  // null where it is absent
  YamlKind kind() const { return node_ ? node_->kind : YamlKind::null; }
  bool is_map() const { return kind() == YamlKind::map; }
  bool is_list() const { return kind() == YamlKind::list; }
  bool is_scalar() const { return kind() == YamlKind::scalar; }
  const std::string& path() const { return path_; }  // "links.nv0.bandwidth", "layers[3].name"
  const std::string& file() const;
  int line() const { return line_; }  // of an absent value: those of the map that lacks it
  int column() const { return column_; }
  Diagnostics& diagnostics() const;

  // Reports a problem that the caller found at this value, or, where it is absent, at the map that lacks it.
  void error(std::string message) const;
  // Reports a word that should refer to something else in the file: "unknown link 'nv'; did you mean 'nv0'?".
  void unknown_word(std::string_view what, std::string_view word, const std::vector<std::string>& known) const;
  // Reports a problem unless the map has exactly one of these keys.
  void exactly_one_of(const std::vector<std::string>& keys) const;

 private:
  struct Shared;
  YamlReader(std::shared_ptr<Shared> shared, const YamlNode* node, std::string path, int line, int column);
  const YamlNode::Entry* find(std::string_view key) const;
  YamlReader child(const YamlNode::Entry& entry) const;
  YamlReader absent(std::string_view key) const;
  bool expect(YamlKind kind, std::string_view what) const;
  void expected(std::string_view what) const;
  std::size_t word_index(const std::vector<std::string>& names) const;
  std::string child_path(std::string_view key) const;
  void finish(const YamlNode& node, const std::string& path, std::set<const YamlNode*>& seen) const;

  template <typename Enum>
  static std::vector<std::string> names_of(const Words<Enum>& words) {
    std::vector<std::string> names;
    for (const auto& word : words) names.push_back(word.first);
    return names;
  }

  std::shared_ptr<Shared> shared_;
  const YamlNode* node_ = nullptr;
  std::string path_;
  int line_ = 0;
  int column_ = 0;
};

}  // namespace tandem
