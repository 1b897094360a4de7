// A vector of very many elements, few of which are ever used. Elements near each other share a page, which is made when
// one of them is first used.
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
  // Returns the element, or a default value where nothing was stored.
  Element at(std::size_t index) const {
    const std::unique_ptr<Element[]>& page = pages_[index / kPage];
    return page ? page[index % kPage] : Element{};
  }

 private:
  static constexpr std::size_t kPage = 256;
  std::vector<std::unique_ptr<Element[]>> pages_;
};

}  // namespace tandem::sim
