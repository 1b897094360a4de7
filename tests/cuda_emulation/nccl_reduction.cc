// What collectives do to memory. Half types are rounded after every step, as NCCL does.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>

#include "tests/cuda_emulation/nccl_clique.h"

namespace tandem::emulation {
namespace {

template <typename T>
T reduced(T a, T b, ncclRedOp_t operation) {
  const auto wide = [](T value) {
    if constexpr (sizeof(T) == 2) {
      return static_cast<float>(value);
    } else {
      return value;
    }
  };
  switch (operation) {
    case ncclMax:
      return wide(a) < wide(b) ? b : a;
    case ncclMin:
      return wide(b) < wide(a) ? b : a;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return static_cast<T>(wide(a) + wide(b));
  }
}

template <typename T>
void reduce(const std::vector<const void*>& inputs, std::byte* to, std::size_t count, ncclRedOp_t operation) {
  for (std::size_t i = 0; i < count; ++i) {
    T value = static_cast<const T*>(inputs[0])[i];
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      value = reduced(value, static_cast<const T*>(inputs[rank])[i], operation);
    }
    reinterpret_cast<T*>(to)[i] = value;
  }
}

void reduce_type(ncclDataType_t type, const std::vector<const void*>& inputs, std::byte* to, std::size_t count,
                 ncclRedOp_t operation) {
  switch (type) {
    case ncclFloat64:
      return reduce<double>(inputs, to, count, operation);
    case ncclFloat32:
      return reduce<float>(inputs, to, count, operation);
    case ncclFloat16:
      return reduce<__half>(inputs, to, count, operation);
    case ncclBfloat16:
      return reduce<__nv_bfloat16>(inputs, to, count, operation);
    case ncclInt64:
      return reduce<std::int64_t>(inputs, to, count, operation);
    case ncclInt32:
      return reduce<std::int32_t>(inputs, to, count, operation);
    default:
      return reduce<std::uint8_t>(inputs, to, count, operation);
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
      return 8;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

// Into memory of its own first: outputs may be inputs.
void execute(const std::vector<Contribution>& ranks) {
  if (ranks.front().count == 0) return;
  const Contribution& call = ranks.front();
  const std::size_t bytes = call.count * size_of(call.type);
  std::vector<std::byte> result;
  std::vector<const void*> inputs;
  for (const Contribution& rank : ranks) inputs.push_back(rank.input);
  const auto root = static_cast<std::size_t>(call.root);
  switch (call.kind) {
    case Collective::reduce_scatter:
      result.resize(bytes * ranks.size());
      reduce_type(call.type, inputs, result.data(), call.count * ranks.size(), call.operation);
      for (std::size_t i = 0; i < ranks.size(); ++i) std::memcpy(ranks[i].output, &result[bytes * i], bytes);
      return;
    case Collective::all_gather:
      for (const void* input : inputs) {
        const auto* begin = static_cast<const std::byte*>(input);
        result.insert(result.end(), begin, begin + bytes);
      }
      break;
    case Collective::broadcast:
      result.resize(bytes);
      std::memcpy(result.data(), inputs[root], bytes);
      break;
    default:
      result.resize(bytes);
      reduce_type(call.type, inputs, result.data(), call.count, call.operation);
  }
  if (call.kind == Collective::reduce) {
    std::memcpy(ranks[root].output, result.data(), bytes);
    return;
  }
  for (const Contribution& rank : ranks) std::memcpy(rank.output, result.data(), result.size());
}

}  // namespace tandem::emulation
