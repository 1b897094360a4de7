// Maps a tensor's element type to a C++ type.
#pragma once

#include <cstdint>

#include "engine/base/half.h"
#include "topologies/base/dtype.h"

namespace tandem {

// Calls function.operator()<T>() with the C++ type of the elements, or otherwise() for types without arithmetic on a
// CPU.
template <typename Function, typename Otherwise>
void with_element_type(DType dtype, Function&& function, Otherwise&& otherwise) {
  switch (dtype) {
    case DType::f32:
      return function.template operator()<float>();
    case DType::f64:
      return function.template operator()<double>();
    case DType::f16:
      return function.template operator()<Float16>();
    case DType::bf16:
      return function.template operator()<BFloat16>();
    case DType::i32:
      return function.template operator()<std::int32_t>();
    case DType::i64:
      return function.template operator()<std::int64_t>();
    case DType::u8:
      return function.template operator()<std::uint8_t>();
    default:
      return otherwise();
  }
}

}  // namespace tandem
