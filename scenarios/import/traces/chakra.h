// Reads Chakra execution traces, one file for each rank: protobuf messages with lengths before them (.et), or the JSON
// that ASTRA-sim takes. Both may be plain or gzip files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/traces/trace.h"

namespace tandem {

// What executes an op until order_by_dependencies() gives it a stream.
enum ChakraStream : int { kKernels, kCollectives, kSends, kReceives, kMemory, kHost, kChakraStreams };

// A node of either form.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string name{};
  std::int64_t type = 0;  // NodeType of the schema
  std::vector<std::uint64_t> deps{};
  std::int64_t duration_us = 0;
  bool is_cpu_op = false;
  double flops = 0, tensor_bytes = 0;
  std::int64_t collective = -1;  // CollectiveCommType
  std::int64_t comm_bytes = 0, source = -1, target = -1, tag = 0;
  std::string group{};
  bool has_some_dimensions = false;   // of the network only
  std::vector<std::string> unused{};  // attributes that could matter, and have no effect here
  FilePlace place{};
};

// Returns whether an attribute that the readers do not use might change times elsewhere. Those that only describe a
// node, such as its place in the program, do not.
bool is_unused_chakra_attribute(std::string_view name);

bool is_chakra_file(const std::filesystem::path& file);  // by its name: .et, .et.gz

// Reads the nodes of a protobuf file. Throws InputError.
std::vector<ChakraNode> read_chakra_messages(const std::filesystem::path& file);
// Reads the nodes of a JSON file. Throws InputError.
std::vector<ChakraNode> read_chakra_json(const std::filesystem::path& file);

using ChakraGroups = std::map<std::string, std::vector<int>>;
// Reads the ranks of each group: {"1": [0, 1]}.
ChakraGroups read_chakra_groups(const std::filesystem::path& file);

// Makes the trace of one rank, which is the last number of the file's name: "resnet.3.et". `world` is the number of
// ranks. Throws InputError for cycles, ids that repeat, and groups that are missing.
RankTrace make_chakra_trace(const std::vector<ChakraNode>& nodes, const std::string& file, const ChakraGroups& groups,
                            int world);
int rank_of_file(const std::filesystem::path& file);  // -1: its name has none
// Returns this file and those of its folder whose names differ from it in the rank only, in the order of their ranks.
std::vector<std::filesystem::path> files_of_ranks(const std::filesystem::path& file);

}  // namespace tandem
