// Element types of tensors, and of the rates that a device reaches on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem {

// tf32, fp8 and fp4 are rates and no storage formats: no tensor has them, but GEMMs on f32 tensors may run at the rate
// of tf32, and those whose operands are quantised at the rates of fp8 or fp4.
enum class DType : std::uint8_t { f64, f32, tf32, f16, bf16, i64, i32, u8, fp8, fp4 };

// Returns the bytes of one element; tf32 counts as f32, in which it is stored, and fp4 as a whole byte.
std::size_t size_of(DType dtype);
double operand_bytes(DType dtype);                            // the same, with two elements of fp4 in a byte
std::string_view name_of(DType dtype);                        // "f32"
std::optional<DType> dtype_from_name(std::string_view name);  // inverse of name_of

}  // namespace tandem
