#include "reports/base/json_document.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "topologies/base/json_stream.h"
#include "topologies/base/utf8.h"

namespace tandem {
namespace {

using OrderedJson = JsonOrigin::Json;

// Builds a document from the parts of its text. The library's own parser takes the last of several equal keys, and says
// of a value only what it is.
class DocumentReader {
 public:
  explicit DocumentReader(JsonStream& json) : json_(json) {}

  OrderedJson read() {
    json_.next();
    OrderedJson value = value_here();
    json_.next();
    return value;
  }

 private:
  OrderedJson value_here() {
    switch (json_.part()) {
      case JsonPart::begin_object:
        return object();
      case JsonPart::begin_array:
        return list();
      case JsonPart::string:
        return text();
      case JsonPart::number:
        return number();
      case JsonPart::boolean:
        return json_.text() == "true";
      default:
        return nullptr;
    }
  }

  OrderedJson object() {
    OrderedJson::object_t members;
    std::unordered_set<std::string> keys;
    while (json_.next() != JsonPart::end_object) {
      std::string key = text();
      if (!keys.insert(key).second) json_.fail("a second key '" + shortened(key) + "'");
      json_.next();
      members.emplace_back(std::move(key), value_here());
    }
    return members;
  }

  OrderedJson list() {
    OrderedJson::array_t items;
    while (json_.next() != JsonPart::end_array) items.push_back(value_here());
    return items;
  }

  std::string text() const {
    const std::string_view text = json_.text();
    if (first_not_utf8(text) != std::string_view::npos) json_.fail("not UTF-8; save the file in that encoding");
    return std::string(text);
  }

  OrderedJson number() const {
    const std::string_view text = json_.text();
    const char* const end = text.data() + text.size();
    if (std::uint64_t value = 0; std::from_chars(text.data(), end, value).ptr == end && is_whole(text, value))
      return value;
    if (std::int64_t value = 0; std::from_chars(text.data(), end, value).ptr == end && is_whole(text, value))
      return value;
    return json_.finite_number();
  }

  // from_chars goes past all digits of a number that does not fit, too.
  template <typename Whole>
  static bool is_whole(std::string_view text, Whole value) {
    return text == std::to_string(value);
  }

  JsonStream& json_;
};

// Goes through a text and the document that was read from it side by side.
class PlaceFinder {
 public:
  explicit PlaceFinder(JsonStream& json) : json_(json) {}

  void want(const OrderedJson* value) { places_.emplace(value, FilePlace{}); }

  void pass(const OrderedJson& value) {
    if (const auto wanted = places_.find(&value); wanted != places_.end()) wanted->second = json_.place();
    if (!value.is_structured()) return;
    for (const OrderedJson& item : value) {
      json_.next();                         // the key, or the item
      if (value.is_object()) json_.next();  // the value of the key
      pass(item);
    }
    json_.next();  // the end
  }

  const FilePlace& of(const OrderedJson* value) const { return places_.at(value); }

 private:
  JsonStream& json_;
  std::unordered_map<const OrderedJson*, FilePlace> places_;
};

}  // namespace

JsonOrigin::JsonOrigin(std::string file, std::string_view text, int line)
    : file_(std::move(file)),
      text_(std::make_shared<const std::string>(text)),
      begin_{.line = line, .column = kBeginning.column} {}

OrderedJson JsonOrigin::parse() const {
  if (!text_) return nullptr;
  if (text_->starts_with(kPageBegin)) {
    throw InputError(
        {problem_at(file_, begin_,
                    "is a page, which only shows a result; expected the result itself, as the command that "
                    "wrote the page stores it with --json -o FILE")});
  }
  if (text_->find_first_not_of(" \t\r\n") == std::string::npos) {
    throw InputError({{.file = file_, .path = "", .message = "the file is empty"}});
  }
  JsonStream json(file_, *text_, begin_);
  return DocumentReader(json).read();
}

std::vector<FilePlace> JsonOrigin::places(const Json& document, std::span<const Json* const> values) const {
  if (!text_) return std::vector<FilePlace>(values.size());
  JsonStream json(file_, *text_, begin_);
  PlaceFinder finder(json);
  for (const Json* const value : values) finder.want(value);
  json.next();
  finder.pass(document);
  std::vector<FilePlace> places;
  for (const Json* const value : values) places.push_back(finder.of(value));
  return places;
}

OrderedJson parse_json(std::string_view text, const std::string& file) {
  return JsonOrigin(file, text).parse();
}

}  // namespace tandem
