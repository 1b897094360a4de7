#include "topologies/base/dtype.h"

#include <array>

#include "topologies/base/error.h"

namespace tandem {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size_bytes;
};

constexpr std::array<DTypeRow, 10> kEntries{{{DType::f64, "f64", 8},
                                             {DType::f32, "f32", 4},
                                             {DType::tf32, "tf32", 4},
                                             {DType::f16, "f16", 2},
                                             {DType::bf16, "bf16", 2},
                                             {DType::i64, "i64", 8},
                                             {DType::i32, "i32", 4},
                                             {DType::u8, "u8", 1},
                                             {DType::fp8, "fp8", 1},
                                             {DType::fp4, "fp4", 1}}};

const DTypeRow& entry_of(DType dtype) {
  for (const DTypeRow& entry : kEntries) {
    if (entry.dtype == dtype) return entry;
  }
  TANDEM_UNREACHABLE("a DType outside its enumerators");
}

}  // namespace

std::size_t size_of(DType dtype) {
  return entry_of(dtype).size_bytes;
}

double operand_bytes(DType dtype) {
  return dtype == DType::fp4 ? 0.5 : static_cast<double>(size_of(dtype));
}

std::string_view name_of(DType dtype) {
  return entry_of(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace tandem
