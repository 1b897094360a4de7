// Times of one collective over a range of sizes, as nccl-tests prints them: measured here, simulated, or published.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/collective.h"

namespace tandem {

struct CollectiveRow {
  std::int64_t bytes = 0;  // nccl-tests' definition: the larger of a rank's input and output
  std::int64_t count = 0;  // elements, as printed; 0: not stated
  std::optional<double> out_of_place_us{};
  std::optional<double> in_place_us{};
  std::optional<std::int64_t> wrong{};  // elements with a wrong value; empty: not checked
  std::string algorithm{};              // "ring LL128, 24 channels"; empty where it is unknown
  int line = 0;                         // of the file

  // Returns the time out of place, else in place, or 0 without either.
  double time_us() const { return out_of_place_us.value_or(in_place_us.value_or(0)); }
};

struct CollectiveTable {
  std::string operation{};      // "all_reduce", "all_to_all", "send_receive"; empty: unknown
  std::string dtype = "float";  // the word of nccl-tests
  std::string redop{};          // "sum", "none"; empty: not stated
  int root = -1;
  int devices = 0;              // 0, here and below: not stated
  int nodes = 0;                // different machines
  int devices_per_process = 0;  // several, where one process drives several devices
  std::string nccl_version{};   // "2.27.3"; empty: not stated
  std::vector<CollectiveRow> rows{};
  std::string file{};
  int line = 0;
  std::string left_out{};  // what someone has replaced by "...": "ranks (line 7) and rows (line 14)"; empty: nothing
};

// Convert words of nccl-tests. An element type that Tandem does not have becomes the one of equal size: "int8" is u8.
std::optional<DType> dtype_of_nccl(std::string_view word);
std::string nccl_word_of(DType dtype);
std::string nccl_word_of(Reduction reduction);  // "sum", "max", "min"
std::optional<Reduction> reduction_of_nccl(std::string_view word);

// Returns "all_reduce" for "all_reduce_perf", "/usr/bin/all_reduce_perf", "AllReduce" or "ncclAllReduce", and
// "send_receive" for "sendrecv" and "send_recv": case, '_', '-' and spaces do not matter. Empty for anything that is
// not a test of nccl-tests.
std::string operation_of_test(std::string_view program);
std::optional<CollectiveKind> kind_of_operation(std::string_view operation);
std::string operation_of(CollectiveKind kind);  // the inverse
std::vector<std::string> known_operations();

// Returns the ratio of bus bandwidth to algorithm bandwidth; nothing for operations that Tandem does not know.
std::optional<double> bus_factor(const std::string& operation, int devices);

}  // namespace tandem
