// A small JSON document with the place of every value, for files such as config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/input_file.h"
#include "topologies/base/json_stream.h"

namespace tandem {

struct JsonValue {
  struct Member;
  JsonPart kind = JsonPart::null;  // begin_object, begin_array, or that of a scalar
  std::string text{};              // of a scalar
  std::vector<JsonValue> items{};
  std::vector<Member> members;  // without an initialiser, since Member is complete only below
  int line = 0, column = 0;

  bool is_object() const { return kind == JsonPart::begin_object; }
  bool is_list() const { return kind == JsonPart::begin_array; }
  bool is_null() const { return kind == JsonPart::null; }
  // Returns the last member of that name, or null if there is none.
  const JsonValue* find(std::string_view key) const;
};
struct JsonValue::Member {
  std::string key;
  JsonValue value;
};

// Reads the value that begins with the stream's current part.
JsonValue read_value(JsonStream& json);

// Reads a whole file of at most 16 MiB. Throws InputError.
JsonValue read_json(const InputFile& file);

}  // namespace tandem
