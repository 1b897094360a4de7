#include <fmt/format.h>

#include <cstdlib>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/base/json_value.h"
#include "scenarios/import/traces/chakra.h"
#include "topologies/base/error.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr double kMostJsonNumber = 1e15;

std::int64_t number_in(const JsonStream& json) {
  const double value = json.number();
  const std::string_view text = json.text();
  const bool is_in_quotes = json.part() == JsonPart::string && !text.empty() &&
                            text.find_first_not_of("0123456789.") == std::string_view::npos;
  const bool is_number = json.part() == JsonPart::number || is_in_quotes;
  if (!is_number || !(value >= 0 && value <= kMostJsonNumber)) json.fail("expected a number from 0 to 10^15");
  return static_cast<std::int64_t>(value);
}

void read_json_deps(JsonStream& json, std::vector<std::uint64_t>& deps) {
  if (json.part() == JsonPart::number) return deps.push_back(static_cast<std::uint64_t>(number_in(json)));
  if (json.part() != JsonPart::begin_array) return json.skip();
  while (json.next() != JsonPart::end_array) deps.push_back(static_cast<std::uint64_t>(number_in(json)));
}

// Whether a value is another one than what stands where nothing was set.
bool says_something(const JsonStream& json) {
  if (json.part() == JsonPart::null) return false;
  const std::string_view text = json.text();
  return text != "0" && text != "false" && !(json.part() == JsonPart::string && text.empty());
}

ChakraNode read_json_node(JsonStream& json) {
  ChakraNode node;
  node.place = json.place();
  if (json.part() != JsonPart::begin_object) json.fail("expected a node");
  bool has_id = false;
  while (json.next() == JsonPart::key) {
    const std::string key(json.text());
    json.next();
    if (key == "Id" || key == "id") {
      node.id = static_cast<std::uint64_t>(number_in(json));
      has_id = true;
    } else if (key == "Name" || key == "name") {
      node.name = json.text();
    } else if (key == "NodeType" || key == "type") {
      node.type = number_in(json);
    } else if (key == "ctrlDeps" || key == "ctrl_deps" || key == "data_deps" || key == "dataDeps") {
      read_json_deps(json, node.deps);
      continue;
    } else if (key == "runtime" || key == "duration_micros") {
      node.duration_us = number_in(json);
      const std::string written = shortened(std::string(json.text())) + " us";
      const double seconds = static_cast<double>(node.duration_us) * 1e-6;
      if (const std::string problem = quantity_problem(seconds, Dimension::seconds, written, true); !problem.empty()) {
        json.fail("a duration " + problem);
      }
    } else if (key == "is_cpu_op") {
      node.is_cpu_op = json.text() == "true" || json.text() == "1";
    } else if (key == "num_ops") {
      node.flops = static_cast<double>(number_in(json));
    } else if (key == "tensor_size") {
      node.tensor_bytes = static_cast<double>(number_in(json));
    } else if (key == "comm_type") {
      node.collective = number_in(json);
    } else if (key == "comm_size") {
      node.comm_bytes = number_in(json);
    } else if (key == "comm_src") {
      node.source = number_in(json);
    } else if (key == "comm_dst") {
      node.target = number_in(json);
    } else if (key == "comm_tag") {
      node.tag = number_in(json);
    } else if (key == "pg_name") {
      node.group = json.text();
    } else if (is_unused_chakra_attribute(key) && says_something(json)) {
      node.unused.push_back(key);
    }
    json.skip();
  }
  if (!has_id) throw InputError({problem_at(json.file(), node.place, "a node has no Id")});
  return node;
}

}  // namespace

std::vector<ChakraNode> read_chakra_json(const std::filesystem::path& file) {
  ByteSource source(file);
  JsonStream json(source);
  std::vector<ChakraNode> nodes;
  if (json.next() != JsonPart::begin_object) json.fail("expected an object with a workload_graph");
  while (json.next() == JsonPart::key) {
    if (json.text() != "workload_graph") {
      json.skip();
      continue;
    }
    if (json.next() != JsonPart::begin_array) json.fail("expected a list of nodes");
    while (json.next() != JsonPart::end_array) nodes.push_back(read_json_node(json));
  }
  json.next();
  return nodes;
}

ChakraGroups read_chakra_groups(const std::filesystem::path& file) {
  constexpr std::int64_t kMostRank = 1 << 20;
  ChakraGroups groups;
  const JsonValue root = read_json(file);
  for (const JsonValue::Member& member : root.members) {
    std::vector<int>& ranks = groups[member.key];
    for (const JsonValue& rank : member.value.items) {
      const double number = std::strtod(rank.text.c_str(), nullptr);
      if (rank.kind != JsonPart::number || !(number >= 0 && number < kMostRank)) {
        throw InputError({{file.string(), rank.line, rank.column, member.key, "expected the numbers of ranks"}});
      }
      ranks.push_back(static_cast<int>(number));
    }
  }
  return groups;
}

}  // namespace tandem
