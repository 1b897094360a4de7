// A vector of very many elements of which few are ever used: those near each other share a page that is made when the
// first of them is.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace tandem::sim {

template <typename Element>
class SparseVector {
 public:
  explicit SparseVector(std::size_t size = 0) : pages_((size + kPage - 1) / kPage) {}

  Element& operator[](std::size_t index) {
    std::unique_ptr<Element[]>& page = pages_[index / kPage];
    if (!page) page = std::make_unique<Element[]>(kPage);
    return page[index % kPage];
  }
  // A value of its own where nothing was stored.
  Element at(std::size_t index) const {
    const std::unique_ptr<Element[]>& page = pages_[index / kPage];
    return page ? page[index % kPage] : Element{};
  }
  // Calls `visit` with the index and the element of all of every page in use, in their order.
  template <typename Visit>
  void each(Visit&& visit) {
    for (std::size_t page = 0; page < pages_.size(); ++page) {
      for (std::size_t i = 0; pages_[page] && i < kPage; ++i) visit(page * kPage + i, pages_[page][i]);
    }
  }

 private:
  static constexpr std::size_t kPage = 256;
  std::vector<std::unique_ptr<Element[]>> pages_;
};

}  // namespace tandem::sim
