#include "strategies/cross_device/hierarchical_copy_all_reduce.h"

#include "topologies/base/error.h"

namespace tandem {

void HierarchicalCopyAllReduce::gather_half(const TensorGroup& group, std::size_t main, std::size_t first,
                                            std::size_t end) {
  for (std::size_t d = first; d < end; ++d) {
    if (d == main) continue;
    order_after(main, d);
    add_from_peer(main, group[main], group[d]);
  }
}

void HierarchicalCopyAllReduce::spread_half(const TensorGroup& group, std::size_t main, std::size_t first,
                                            std::size_t end) {
  for (std::size_t d = first; d < end; ++d) {
    if (d != main) copy_to_peer(d, group[d], main, group[main]);
  }
}

void HierarchicalCopyAllReduce::sum_in_place(const std::vector<TensorGroup>& groups) {
  const std::size_t n = devices().size();
  const std::size_t half = n / 2;
  TANDEM_CHECK(n > 0 && half > 0, "one device has nothing to reduce");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const TensorGroup& group = groups[i];
    const std::size_t main = i % n;
    const std::size_t main_of_first = main < half ? main : (main + half) % n % half;
    const std::size_t main_of_second = main < half ? main + half : main;
    gather_half(group, main_of_first, 0, half);
    gather_half(group, main_of_second, half, n);
    // One main adds the other half's sum and sends the total back, so neither tensor changes while the other main reads
    // it.
    order_after(main_of_first, main_of_second);
    add_from_peer(main_of_first, group[main_of_first], group[main_of_second]);
    copy_to_peer(main_of_second, group[main_of_second], main_of_first, group[main_of_first]);
    spread_half(group, main_of_first, 0, half);
    spread_half(group, main_of_second, half, n);
    // The mains' tensors must not change until the others have read them.
    for (std::size_t d = 0; d < n; ++d) {
      const std::size_t reader_of = d < half ? main_of_first : main_of_second;
      if (d != reader_of) order_after(reader_of, d);
    }
    order_after(main_of_first, main_of_second);
  }
}

}  // namespace tandem
