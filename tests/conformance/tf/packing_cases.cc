// Which tensors are packed together before they are reduced, and the options of collectives.
#include "strategies/base/communication_options.h"
#include "strategies/cross_device/all_reduce_spec.h"
#include "strategies/cross_device/packing.h"
#include "strategies/cross_device/small_tensors.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem::packing_cases {
namespace {

using Sizes = std::vector<std::optional<std::int64_t>>;

Json pack_sizes(const Sizes& bytes, std::int64_t bytes_per_pack) {
  Json sizes = Json::array();
  for (const auto& pack : packs_by_bytes(bytes, bytes_per_pack)) sizes.push_back(pack.size());
  return sizes;
}

Json packer(int num_packs, std::int64_t max_bytes, int max_group) {
  switch (choose_packer(num_packs, max_bytes, max_group)) {
    case TensorPacker::concat_and_split:
      return "concat-and-split";
    case TensorPacker::small_tensor_aggregation:
      return "small-tensor aggregation";
    case TensorPacker::none:
      return "none";
  }
  return nullptr;
}

Json ranges_of(const std::vector<int>& indices, int limit) {
  const IndexRuns runs = extract_ranges(indices, limit);
  return {{"ranges", runs.ranges}, {"singles", runs.singles}};
}

SmallTensorPacks packs_of(const std::vector<std::int64_t>& elements, std::int64_t max_bytes, int max_group,
                          DType dtype = DType::f32) {
  std::vector<GradientSize> gradients;
  for (const std::int64_t count : elements) gradients.push_back({.dtype = dtype, .elements = count});
  return pack_small_tensors(gradients, max_bytes, max_group);
}

Json summary(const SmallTensorPacks& packs) {
  return {{"ranges", packs.ranges}, {"unpacked", packs.unpacked}, {"output", packs.output_elements}};
}

Json fields(const CommunicationOptions& options) {
  return {options.bytes_per_pack, json_of(options.timeout_seconds), name_of(options.implementation)};
}

Json checked_bytes(std::int64_t bytes_per_pack) {
  return outcome_of([&] {
    const CommunicationOptions options{.bytes_per_pack = bytes_per_pack};
    check_communication_options(options);
    return options.bytes_per_pack;
  });
}

Json pieces(std::int64_t elements, int num_packs) {
  return outcome_of([&] { return pack_lengths(elements, num_packs); });
}

Json picked(const std::vector<std::size_t>& indices, const Sizes& elements) {
  Json counts = Json::array();
  for (const std::size_t i : indices) counts.push_back(*elements[i]);
  return counts;
}

bool add_packs = add_cases({
    {"pack-001",
     [](const CaseWorld&) {
       const Sizes bytes = {128, 32, 800, 4};
       Json packs = Json::array();
       for (const auto& pack : packs_by_bytes(bytes, 200)) packs.push_back(picked(pack, bytes));
       return Json{{"pack_sizes", pack_sizes(bytes, 200)}, {"packs_bytes", packs}};
     }},
    {"pack-003",
     [](const CaseWorld&) {
       return Json{{"pack_sizes", pack_sizes({4, std::nullopt}, 1)}};
     }},
    {"pack-004",
     [](const CaseWorld&) {
       return Json{{"pack_sizes", pack_sizes({200, 200, 200}, 200)}};
     }},
    {"pack-010",
     [](const CaseWorld&) {
       return Json{{"packer", {packer(1, 100, 10), packer(0, 100, 10), packer(0, 0, 10), packer(0, 100, 0)}}};
     }},
    {"pack-011",
     [](const CaseWorld&) {
       return Json{{"results",
                    {ranges_of({0, 1, 2, 5, 6, 9}, 32), ranges_of({0, 1, 2, 3, 4, 5}, 2), ranges_of({}, 32),
                     ranges_of({4}, 32)}}};
     }},
    {"pack-012",
     [](const CaseWorld&) {
       const SmallTensorPacks packs = packs_of({2, 2, 1000, 2, 2, 2, 1000, 2}, 100, 10);
       const auto packed = static_cast<std::ptrdiff_t>(packs.ranges.size());
       return Json{{"packed_ranges", packs.ranges},
                   {"packed_first_sizes",
                    std::vector<std::int64_t>(packs.output_elements.begin(), packs.output_elements.begin() + packed)},
                   {"then_unpacked_in_order", packs.unpacked},
                   {"output_count", packs.output_elements.size()}};
     }},
    {"pack-013",
     [](const CaseWorld&) {
       const bool packed = !packs_of({2, 2}, 100, 10, DType::f64).ranges.empty() ||
                           !packs_of({2, 2}, 100, 10, DType::i32).ranges.empty();
       return Json{{"packed", packed}};
     }},
    {"pack-014",
     [](const CaseWorld&) {
       const Sizes elements = {10, 100, 101};
       const SizeSplit split = split_by_elements(elements, 100);
       return Json{{"this_spec", picked(split.within, elements)}, {"remaining", picked(split.above, elements)}};
     }},
    {"pack-x01",
     [](const CaseWorld&) {
       return Json{{"value", {pieces(10, 4), pieces(3, 3), pieces(2, 5), pieces(7, 0), pieces(7, -1)}}};
     }},
    {"pack-x02",
     [](const CaseWorld&) {
       Json value = Json::array();
       for (const int bytes : {0, 1, 4, 5, 100}) value.push_back(pack_sizes({5, 5, 5}, bytes));
       value.push_back(pack_sizes({}, 8));
       return Json{{"value", value}};
     }},
    {"pack-x05",
     [](const CaseWorld&) {
       std::vector<int> forty;
       for (int i = 0; i < 40; ++i) forty.push_back(i);
       return Json{{"value",
                    {ranges_of(forty, 32), ranges_of({0, 1, 2, 3, 4, 5}, 1), ranges_of({2, 4, 6}, 32),
                     ranges_of({1, 2, 4, 5, 6, 9}, 32)}}};
     }},
    {"pack-x06",
     [](const CaseWorld&) {
       return Json{{"first", summary(packs_of({25, 26, 25, 25}, 100, 10))},
                   {"alone", summary(packs_of({3}, 100, 10))},
                   {"no_bytes", outcome_of([] { return summary(packs_of({3}, 0, 10)); })},
                   {"no_group", outcome_of([] { return summary(packs_of({3}, 100, 0)); })}};
     }},
});

bool add_options = add_cases({
    {"pack-005",
     [](const CaseWorld&) {
       return Json{{"first", checked_bytes(1)}, {"second", checked_bytes(-1)}};
     }},
    {"pack-x03",
     [](const CaseWorld&) {
       using enum CommunicationImplementation;
       const CommunicationOptions first{.bytes_per_pack = 100, .timeout_seconds = 30.0, .implementation = ring};
       return Json{{"value",
                    {fields(first.merge({})), fields(first.merge({.bytes_per_pack = 1, .implementation = nccl})),
                     fields(first.merge({.timeout_seconds = 5.0})),
                     fields(CommunicationOptions{}.merge({.bytes_per_pack = 7}))}}};
     }},
    {"pack-x04",
     [](const CaseWorld&) {
       Json value = Json::array();
       for (const char* name : {"auto", "Ring", "NCCL", "mpi"}) {
         value.push_back(outcome_of([&] { return name_of(communication_implementation_from_name(name)); }));
       }
       return Json{{"value", value}};
     }},
});

}  // namespace
}  // namespace tandem::packing_cases
