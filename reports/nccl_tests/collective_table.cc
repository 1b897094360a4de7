#include "reports/nccl_tests/collective_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace tandem {
namespace {

struct NcclType {
  std::string_view word;
  DType dtype;
};
// The first word of a type is the one written.
constexpr std::array kNcclTypes{
    NcclType{"float", DType::f32},     NcclType{"double", DType::f64}, NcclType{"half", DType::f16},
    NcclType{"bfloat16", DType::bf16}, NcclType{"int64", DType::i64},  NcclType{"int32", DType::i32},
    NcclType{"uint8", DType::u8},      NcclType{"uint64", DType::i64}, NcclType{"uint32", DType::i32},
    NcclType{"int8", DType::u8},       NcclType{"int", DType::i32},    NcclType{"char", DType::u8},
    NcclType{"f8e4m3", DType::u8},     NcclType{"f8e5m2", DType::u8},  NcclType{"fp8_e4m3", DType::u8},
    NcclType{"fp8_e5m2", DType::u8},
};

// What nccl-tests and other programs call a collective, without case and separators, and what Tandem does.
struct Test {
  std::string_view program;
  std::string_view operation;
};
constexpr std::array kTests{
    Test{"allreduce", "all_reduce"},     Test{"allgather", "all_gather"}, Test{"reducescatter", "reduce_scatter"},
    Test{"broadcast", "broadcast"},      Test{"bcast", "broadcast"},      Test{"reduce", "reduce"},
    Test{"alltoall", "all_to_all"},      Test{"all2all", "all_to_all"},   Test{"sendrecv", "send_receive"},
    Test{"sendreceive", "send_receive"}, Test{"alltoallv", "alltoallv"},  Test{"gather", "gather"},
    Test{"scatter", "scatter"},          Test{"hypercube", "hypercube"},
};

std::string without_separators(std::string_view word) {
  std::string letters;
  for (const char c : word) {
    if (c != '_' && c != '-' && c != ' ') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

}  // namespace

std::optional<DType> dtype_of_nccl(std::string_view word) {
  for (const NcclType& type : kNcclTypes) {
    if (type.word == word) return type.dtype;
  }
  return {};
}

std::string nccl_word_of(DType dtype) {
  for (const NcclType& type : kNcclTypes) {
    if (type.dtype == dtype) return std::string(type.word);
  }
  return "float";  // tf32 is stored as f32
}

std::string nccl_word_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::maximum:
      return "max";
    case Reduction::minimum:
      return "min";
  }
  TANDEM_UNREACHABLE("a Reduction outside its enumerators");
}

std::optional<Reduction> reduction_of_nccl(std::string_view word) {
  for (const Reduction reduction : {Reduction::sum, Reduction::maximum, Reduction::minimum}) {
    if (nccl_word_of(reduction) == word) return reduction;
  }
  return {};
}

std::string operation_of_test(std::string_view program) {
  if (const auto slash = program.rfind('/'); slash != std::string_view::npos) program.remove_prefix(slash + 1);
  if (program.ends_with("_perf")) program.remove_suffix(5);
  std::string word = without_separators(program);
  if (word.starts_with("nccl") || word.starts_with("rccl")) word.erase(0, 4);
  for (const Test& test : kTests) {
    if (test.program == word) return std::string(test.operation);
  }
  return "";
}

std::optional<CollectiveKind> kind_of_operation(std::string_view operation) {
  if (operation == "send_receive") return CollectiveKind::send_receive;
  return collective_of_record(operation);
}

std::string operation_of(CollectiveKind kind) {
  return kind == CollectiveKind::send_receive ? "send_receive" : std::string(name_of(kind));
}

std::vector<std::string> known_operations() {
  std::vector<std::string> known;
  for (const Test& test : kTests) {
    const std::string operation(test.operation);
    if (kind_of_operation(operation) && std::find(known.begin(), known.end(), operation) == known.end()) {
      known.push_back(operation);
    }
  }
  return known;
}

std::optional<double> bus_factor(const std::string& operation, int devices) {
  const auto kind = kind_of_operation(operation);
  if (!kind || devices < 1) return {};
  return bus_bandwidth_factor(*kind, devices);
}

}  // namespace tandem
