#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "topologies/base/machine_memory.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/base/utf8.h"

namespace tandem {
namespace {

constexpr std::size_t kMostNesting = 64;
constexpr std::size_t kMostAliased = 1000000;
constexpr std::size_t kMostBrackets = 1000;  // open at the same time, including those in texts and comments

[[noreturn]] void fail(const std::string& file, int line, int column, std::string message) {
  throw InputError({Diagnostic{file, line, column, "", std::move(message)}});
}

// yaml-cpp takes bytes as they are, but converts a text that begins like UTF-16 or UTF-32.
void check_utf8(std::string_view text, const std::string& file) {
  const std::string_view begin = text.substr(0, 4);
  if (begin.starts_with("\xFE\xFF") || begin.starts_with("\xFF\xFE") || begin.find('\0') != std::string_view::npos) {
    return;
  }
  int line = 1, column = 1;
  for (std::size_t at = 0; at < text.size(); ++column) {
    const std::size_t size = utf8_size(text.substr(at));
    if (size == 0) fail(file, line, column, "not UTF-8; save the file in that encoding");
    if (text[at] == '\n') {
      ++line;
      column = 0;
    }
    at += size;
  }
}

// Refuses files that are not text, and names their kind.
void check_text(std::string_view text, const std::string& file) {
  if (text.starts_with("\x1f\x8b")) fail(file, 1, 1, "is a gzip file; unpack it first");
  const std::string_view begin = text.substr(0, 4);
  const bool has_mark = begin.starts_with("\xFE\xFF") || begin.starts_with("\xFF\xFE");
  const auto zeros = std::count(begin.begin(), begin.end(), '\0');  // UTF-16 and UTF-32 have one to three of them
  const bool is_wide = has_mark || (zeros > 0 && zeros < static_cast<std::ptrdiff_t>(begin.size()));
  if (const std::size_t zero = text.find('\0'); !is_wide && zero != std::string_view::npos) {
    throw InputError({problem_at(file, place_in(text, zero), "is not text")});
  }
}

// Bounds the brackets, because yaml-cpp stores something for every open one before it reports the first.
void check_brackets(std::string_view text, const std::string& file) {
  std::size_t open = 0;
  int line = 1, column = 1;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (open > kMostBrackets) fail(file, line, column, "nested more than 64 levels deep");
    ++column;
    if (c != '\n') continue;
    ++line;
    column = 1;
  }
}

}  // namespace

// Turns the events of yaml-cpp's parser into nodes. Its own nodes would hide duplicate keys and aliases.
class YamlBuilder : public YAML::EventHandler {
 public:
  explicit YamlBuilder(YamlDocument& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (document_.root_ != nullptr) stop(mark, "a second document in one file; keep one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(YamlKind::null, mark, "", anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode& node = add(YamlKind::scalar, mark, tag, anchor, value, tag != "?");
    node.text = value;
    node.quoted = tag != "?";
    if (node.quoted) last_quote_ = mark;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(add(YamlKind::list, mark, tag, anchor), mark);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(add(YamlKind::map, mark, tag, anchor), mark);
  }
  // yaml-cpp 0.7 accepts a quoted text that is never closed. Only the last one of a file can be such a text.
  void check_last_quote(std::string_view text) const {
    const auto begin = static_cast<std::size_t>(last_quote_.pos);
    if (last_quote_.is_null() || begin >= text.size() || (text[begin] != '"' && text[begin] != '\'')) return;
    const char quote = text[begin];
    for (std::size_t i = begin + 1; i < text.size(); ++i) {
      if (text[i] == quote) return;
      if (text[i] == '\\' && quote == '"') ++i;
    }
    stop(last_quote_, "not valid YAML: a quoted text without its end");
  }

  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode& target = *anchors_.at(anchor);
    const auto is_target = [&](const Frame& frame) { return frame.node == &target; };
    if (std::any_of(frames_.begin(), frames_.end(), is_target)) stop(mark, "an alias inside the value it stands for");
    aliased_ += sizes_[&target];
    if (aliased_ > kMostAliased) stop(mark, "aliases expand to more than a million values");
    grow(sizes_[&target]);
    if (expects_key()) {
      key_problem(mark, "a key must be text");
    } else {
      attach(target);
    }
  }

 private:
  struct Frame {
    YamlNode* node = nullptr;
    std::string path;
    bool has_key = false;
    bool is_bad_key = false;  // its value is read and dropped
    YamlNode::Entry key;
  };

  [[noreturn]] void stop(const YAML::Mark& mark, std::string message) const {
    fail(document_.file_, mark.line + 1, mark.column + 1, std::move(message));
  }

  void problem(const YAML::Mark& mark, const std::string& path, std::string message) {
    document_.problems_.push_back({document_.file_, mark.line + 1, mark.column + 1, path, std::move(message)});
  }

  bool expects_key() const {
    return !frames_.empty() && frames_.back().node->kind == YamlKind::map && !frames_.back().has_key;
  }

  void key_problem(const YAML::Mark& mark, std::string message) {
    Frame& frame = frames_.back();
    problem(mark, frame.path, std::move(message));
    frame.has_key = frame.is_bad_key = true;
    frame.key.key = "?";
  }

  void take_key(const YAML::Mark& mark, const std::string& text, bool quoted) {
    Frame& frame = frames_.back();
    if (text == "<<" && !quoted) {
      return key_problem(mark, "merge keys (<<) are not supported; use anchors on values");
    }
    for (const YamlNode::Entry& entry : frame.node->entries) {
      if (entry.key == text) {
        return key_problem(mark, "duplicate key '" + text + "', first on line " + std::to_string(entry.line));
      }
    }
    frame.has_key = true;
    frame.key = {text, mark.line + 1, mark.column + 1, nullptr};
  }

  YamlNode& add(YamlKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text = "", bool quoted = false) {
    auto owned = std::make_unique<YamlNode>();
    YamlNode& node = *owned;
    document_.nodes_.push_back(std::move(owned));
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    if (anchor != 0) anchors_[anchor] = &node;
    grow(1);
    sizes_[&node] = 1;
    if (!expects_key()) {
      attach(node);
    } else if (kind == YamlKind::scalar) {
      take_key(mark, text, quoted);
    } else {
      key_problem(mark, "a key must be text");
    }
    if (tag.size() > 1) problem(mark, child_path(), "tags are not supported: '" + tag + "'");
    return node;
  }

  // Adds to the expanded size of every value that is still open.
  void grow(std::size_t count) {
    for (const Frame& frame : frames_) sizes_[frame.node] += count;
  }

  void attach(YamlNode& node) {
    if (frames_.empty()) {
      document_.root_ = &node;
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node->kind == YamlKind::list) {
      frame.node->items.push_back(&node);
      return;
    }
    if (!frame.is_bad_key) {
      frame.key.value = &node;
      frame.node->entries.push_back(frame.key);
    }
    last_key_ = frame.key.key;
    frame.has_key = frame.is_bad_key = false;
  }

  // The path of the value that was attached last.
  std::string child_path() const {
    if (frames_.empty()) return "";
    const Frame& frame = frames_.back();
    if (frame.node->kind == YamlKind::list) {
      const std::size_t count = frame.node->items.size();
      return frame.path + "[" + std::to_string(count > 0 ? count - 1 : 0) + "]";
    }
    return frame.path.empty() ? last_key_ : frame.path + "." + last_key_;
  }

  void open(YamlNode& node, const YAML::Mark& mark) {
    if (frames_.size() == kMostNesting) stop(mark, "nested more than 64 levels deep");
    std::string path = child_path();
    frames_.push_back({&node, std::move(path), false, false, {}});
  }

  void close() { frames_.pop_back(); }

  YamlDocument& document_;
  std::vector<Frame> frames_;
  std::string last_key_;
  std::unordered_map<YAML::anchor_t, YamlNode*> anchors_;
  std::unordered_map<const YamlNode*, std::size_t> sizes_;
  std::size_t aliased_ = 0;
  YAML::Mark last_quote_ = YAML::Mark::null_mark();
};

YamlDocument::YamlDocument() = default;
YamlDocument::YamlDocument(YamlDocument&&) noexcept = default;
YamlDocument& YamlDocument::operator=(YamlDocument&&) noexcept = default;
YamlDocument::~YamlDocument() = default;

YamlDocument YamlDocument::load(const std::filesystem::path& path) {
  return parse(read_input_file(path), path.string());
}

YamlDocument YamlDocument::parse(std::string_view text, std::string file) {
  YamlDocument document;
  document.file_ = std::move(file);
  if (text.size() > kMostInputBytes) fail(document.file_, 0, 0, "larger than 16 MiB");
  check_memory_of_text(document.file_, text.size());
  check_text(text, document.file_);
  check_utf8(text, document.file_);
  check_brackets(text, document.file_);
  YamlBuilder builder(document);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    builder.check_last_quote(text);
  } catch (const YAML::Exception& error) {
    const bool known = !error.mark.is_null();
    fail(document.file_, known ? error.mark.line + 1 : 1, known ? error.mark.column + 1 : 1,
         "not valid YAML: " + error.msg);
  }
  if (document.root_ == nullptr) fail(document.file_, 0, 0, "the file is empty");
  return document;
}

YamlNode& YamlDocument::own(const YamlNode& node) {
  return *nodes_.emplace_back(std::make_unique<YamlNode>(node));
}

std::string read_input_file(const std::filesystem::path& path, std::uintmax_t most_bytes) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) fail(path.string(), 0, 0, "no such file");
  if (std::filesystem::is_directory(path, error)) fail(path.string(), 0, 0, "is a folder, expected a file");
  // Reading a pipe that nobody writes to would never end; the pipes of a shell have a writer.
  const bool is_of_shell =
      path.string().starts_with("/dev/fd/") || path.string().starts_with("/proc/") || path == "/dev/stdin";
  if (std::filesystem::is_fifo(path, error) && !is_of_shell)
    fail(path.string(), 0, 0, "is a named pipe, expected a file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail(path.string(), 0, 0, "cannot be opened");
  const bool is_regular = std::filesystem::is_regular_file(path, error) && !is_of_shell;
  const std::uintmax_t size = is_regular ? std::filesystem::file_size(path, error) : most_bytes;
  if (is_regular && size > kMostInputBytes && size <= most_bytes) check_memory_of_text(path.string(), size);
  std::string text;
  std::string buffer(std::size_t{1} << 16, '\0');
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most_bytes) {
      fail(path.string(), 0, 0, "larger than " + std::to_string(most_bytes >> 20) + " MiB");
    }
    if (text.size() > size) {
      fail(path.string(), 0, 0, "grows while it is read: wait for its writer to end, or copy it first");
    }
  }
  return text;
}

}  // namespace tandem
