#include <algorithm>
#include <numeric>

#include "strategies/input/batch_size.h"
#include "tests/conformance/tf/input_values.h"

namespace tandem::rebatch_cases {
namespace {

// {"value": ...}
Json value(Json json) {
  return {{"value", std::move(json)}};
}

Json sizes_of_workers(std::int64_t global_batch, int workers, int replicas) {
  Json lists = Json::array();
  for (int worker = 0; worker < workers; ++worker) {
    lists.push_back(batch_sizes_for_worker(global_batch, workers, replicas, worker));
  }
  return value(lists);
}

struct Division {
  int global_batch, workers, replicas;
};

std::vector<std::vector<std::int64_t>> lists_of(Division d) {
  std::vector<std::vector<std::int64_t>> lists;
  for (int worker = 0; worker < d.workers; ++worker) {
    lists.push_back(batch_sizes_for_worker(d.global_batch, d.workers, d.replicas, worker));
  }
  return lists;
}

bool every_step_uses_all(Division d) {
  const auto lists = lists_of(d);
  for (int step = 0; step < d.workers; ++step) {
    std::int64_t sum = 0;
    for (const auto& list : lists) {
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(step) * d.replicas;
      sum = std::accumulate(begin, begin + d.replicas, sum);
    }
    if (sum != d.global_batch) return false;
  }
  return true;
}

template <typename Holds>
bool every_list(Division d, const Holds& holds) {
  const auto lists = lists_of(d);
  return std::all_of(lists.begin(), lists.end(), holds);
}

Json check_divisions(const CaseWorld&) {
  bool length = true, sum = true, steps = true, spread = true;
  for (int global_batch = 0; global_batch < 20; ++global_batch) {
    for (int workers = 1; workers < 5; ++workers) {
      for (int replicas = 1; replicas < 4; ++replicas) {
        const Division d{global_batch, workers, replicas};
        length = length && every_list(d, [&](const auto& list) { return std::ssize(list) == workers * replicas; });
        sum = sum && every_list(d, [&](const auto& list) {
                return std::accumulate(list.begin(), list.end(), std::int64_t{0}) == global_batch;
              });
        spread = spread && every_list(d, [](const auto& list) {
                   const auto [least, most] = std::minmax_element(list.begin(), list.end());
                   return *most - *least <= 1;
                 });
        steps = steps && every_step_uses_all(d);
      }
    }
  }
  return {{"length_is_WR", length},
          {"sum_of_each_list_is_G", sum},
          {"sum_over_workers_of_each_step_is_G", steps},
          {"max_minus_min_is_at_most_1", spread}};
}

Json nested_maps(const CaseWorld&) {
  const Dataset dataset = Dataset::range(8).map([](const Element& x) {
    const auto next = HostTensor::scalar(static_cast<std::int64_t>(x.tensor().number()) + 1);
    return Element::map({{"a", x}, {"b", Element::map({{"c", next}})}});
  });
  return value(to_json(dataset.batch(4).legacy_rebatch(2)));
}

Dataset batches_of_4() {
  return Dataset::range(32).batch(4);
}

const bool added = add_cases({
    {"reb-001", [](const CaseWorld&) { return sizes_of_workers(4, 3, 1); }},
    {"reb-002", [](const CaseWorld&) { return sizes_of_workers(8, 2, 2); }},
    {"reb-003", [](const CaseWorld&) { return sizes_of_workers(7, 2, 2); }},
    {"reb-004", [](const CaseWorld&) { return sizes_of_workers(4, 1, 5); }},
    {"reb-006", [](const CaseWorld&) { return sizes_of_workers(4, 5, 1); }},
    {"reb-007", check_divisions},
    {"reb-008", [](const CaseWorld&) { return value(to_json(Dataset::range(8).batch(4).legacy_rebatch(2))); }},
    {"reb-009", [](const CaseWorld&) { return value(to_json(Dataset::range(8).batch(4).legacy_rebatch(3))); }},
    {"reb-013", nested_maps},
    {"reb-014",
     [](const CaseWorld&) { return value(to_json(Dataset::range(16).batch(2).batch(4).legacy_rebatch(2))); }},
    {"reb-015", [](const CaseWorld&) { return value(to_json(Dataset::range(1024).legacy_rebatch(4))); }},
    {"reb-cbs-3", [](const CaseWorld&) { return value(compute_batch_size(batches_of_4())); }},
    {"reb-cbs-4", [](const CaseWorld&) { return value(compute_batch_size(batches_of_4().take(5))); }},
    {"reb-cbs-6",
     [](const CaseWorld&) {
       return value(compute_batch_size(Dataset::zip({batches_of_4(), batches_of_4()})));
     }},

    {"reb-x01",
     [](const CaseWorld&) {
       return value(to_json(Dataset::range(10).batch(4).rebatch({3, 2})));
     }},
    {"reb-x02",
     [](const CaseWorld&) {
       return value(to_json(Dataset::range(2).batch(1).rebatch({1, 0})));
     }},
    {"reb-x03", [](const CaseWorld&) { return value(to_json(Dataset::range(7).batch(3).rebatch({2}, true))); }},
    {"reb-x04", [](const CaseWorld&) { return value(to_json(Dataset::range(9).batch(4).legacy_rebatch(2))); }},
    {"reb-x05",
     [](const CaseWorld&) {
       return value(compute_batch_size(batches_of_4().map([](const Element& batch) { return batch; })));
     }},
    {"reb-x06",
     [](const CaseWorld&) {
       return value(compute_batch_size(Dataset::zip({batches_of_4(), Dataset::range(32).batch(8)})));
     }},
    {"reb-x07",
     [](const CaseWorld&) {
       return value(
           compute_batch_size(Dataset::range(4).flat_map([](const Element&) { return Dataset::range(32).batch(4); })));
     }},
    {"reb-x08",
     [](const CaseWorld&) {
       return value(compute_batch_size(Dataset::from_tensor_slices(HostTensor({6, 3}, std::vector<float>(18)))));
     }},
});

}  // namespace
}  // namespace tandem::rebatch_cases
