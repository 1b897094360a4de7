#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/base/errors.h"
#include "strategies/input/nodes.h"

namespace tandem::nodes {
namespace {

// The sources with random access.
template <typename Node>
class RandomAccess : public NodeOf<Node> {
 public:
  IteratorPtr iterate(const MemoryPtr& /*memory*/) const override {
    class Iterator final : public ElementIterator {
     public:
      explicit Iterator(const RandomAccess& node) : node_(node) {}

     private:
      std::optional<Element> produce() override {
        if (i_ >= *node_.size()) return std::nullopt;
        return node_.at(i_++);
      }
      std::int64_t pass_over(std::int64_t count) override {
        const std::int64_t skipped = std::min(count, *node_.size() - i_);
        i_ += skipped;
        return skipped;
      }
      const RandomAccess& node_;
      std::int64_t i_ = 0;
    };
    return std::make_unique<Iterator>(*this);
  }
  std::int64_t cardinality() const override { return *this->size(); }

 protected:
  using NodeOf<Node>::NodeOf;
};

class Range final : public RandomAccess<Range> {
 public:
  Range(std::int64_t start, std::int64_t stop, std::int64_t step)
      : RandomAccess(DatasetOp::range, {}), start_(start), stop_(stop), step_(step) {}
  std::optional<std::int64_t> size() const override {
    const std::int64_t distance = step_ > 0 ? stop_ - start_ : start_ - stop_;
    const std::int64_t step = step_ > 0 ? step_ : -step_;
    return distance <= 0 ? 0 : (distance + step - 1) / step;
  }
  Element at(std::int64_t index) const override { return HostTensor::scalar(start_ + index * step_); }
  bool skips_unmade() const override { return true; }
  ElementSpec spec() const override { return spec_of(HostTensor::scalar(start_)); }

 private:
  std::int64_t start_, stop_, step_;
};

class Slices final : public RandomAccess<Slices> {
 public:
  Slices(StructurePtr structure, std::vector<HostTensor> arrays)
      : RandomAccess(DatasetOp::slices, {}), structure_(std::move(structure)), arrays_(std::move(arrays)) {}
  std::optional<std::int64_t> size() const override { return arrays_.front().rows(); }
  Element at(std::int64_t index) const override {
    std::vector<HostTensor> rows;
    rows.reserve(arrays_.size());
    for (const HostTensor& array : arrays_) rows.push_back(array.row(index));
    return {structure_, std::move(rows)};
  }
  bool skips_unmade() const override { return true; }
  ElementSpec spec() const override {
    ElementSpec spec{.structure = structure_};
    for (const HostTensor& array : arrays_) {
      const auto row = array.shape().dimensions().subspan(1);
      spec.components.push_back({.dtype = array.dtype(), .dimensions = {row.begin(), row.end()}});
    }
    return spec;
  }

 private:
  StructurePtr structure_;
  std::vector<HostTensor> arrays_;
};

class Elements final : public RandomAccess<Elements> {
 public:
  explicit Elements(std::vector<Element> elements)
      : RandomAccess(DatasetOp::elements, {}), elements_(std::move(elements)) {}
  std::optional<std::int64_t> size() const override { return static_cast<std::int64_t>(elements_.size()); }
  Element at(std::int64_t index) const override { return elements_[static_cast<std::size_t>(index)]; }
  ElementSpec spec() const override {
    if (elements_.empty()) return {};
    ElementSpec spec = spec_of(elements_.front());
    for (const Element& element : elements_) merge(spec, spec_of(element));
    return spec;
  }

 private:
  // Dimensions that differ between elements are unknown.
  static void merge(ElementSpec& spec, const ElementSpec& other) {
    if (spec.components.size() != other.components.size()) return;
    for (std::size_t c = 0; c < spec.components.size(); ++c) {
      auto& dimensions = spec.components[c].dimensions;
      for (std::size_t d = 0; d < dimensions.size() && d < other.components[c].dimensions.size(); ++d) {
        if (dimensions[d] != other.components[c].dimensions[d]) dimensions[d] = TensorSpec::kUnknown;
      }
    }
  }
  std::vector<Element> elements_;
};

class Generated final : public NodeOf<Generated> {
 public:
  Generated(std::function<Dataset::Generator()> start, ElementSpec spec)
      : NodeOf(DatasetOp::generator, {}), start_(std::move(start)), spec_(std::move(spec)) {}
  IteratorPtr iterate(const MemoryPtr& /*memory*/) const override { return make_iterator(start_()); }
  ElementSpec spec() const override { return spec_; }
  std::int64_t cardinality() const override { return kUnknownCardinality; }

 private:
  std::function<Dataset::Generator()> start_;
  ElementSpec spec_;
};

class Reader final : public NodeOf<Reader> {
 public:
  Reader(std::vector<std::string> names, Dataset::FileReader read, std::shared_ptr<SampledFile> sampled)
      : NodeOf(DatasetOp::reader, {}),
        names_(std::move(names)),
        read_(std::move(read)),
        sampled_(sampled ? std::move(sampled) : std::make_shared<SampledFile>()) {}
  IteratorPtr iterate(const MemoryPtr& /*memory*/) const override {
    return make_iterator([this, file = std::size_t{0}, record = std::size_t{0},
                          records = std::vector<Element>()]() mutable -> std::optional<Element> {
      while (record == records.size()) {
        if (file == names_.size()) return std::nullopt;
        const std::string& name = names_[file++];
        std::optional<std::vector<Element>> known = sampled_->take(name);
        records = known ? *std::move(known) : read_(name);
        record = 0;
      }
      return records[record++];
    });
  }
  ElementSpec spec() const override {
    const auto first = sample();
    return first ? spec_of(*first) : ElementSpec{};
  }
  std::optional<Element> sample() const override {
    for (const std::string& name : names_) {
      if (auto element = sampled_->element(name, read_)) return element;
    }
    return std::nullopt;
  }
  std::int64_t cardinality() const override { return kUnknownCardinality; }

 private:
  std::vector<std::string> names_;
  Dataset::FileReader read_;
  std::shared_ptr<SampledFile> sampled_;
};

}  // namespace

// Exclusive use, unless somebody else has it.
class SampledFile::Turn {
 public:
  explicit Turn(SampledFile& file) : file_(file), has_(!file.busy_.test_and_set(std::memory_order_acquire)) {}
  ~Turn() {
    if (has_) file_.busy_.clear(std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return has_; }

 private:
  SampledFile& file_;
  const bool has_;
};

std::optional<Element> SampledFile::element(const std::string& name, const Dataset::FileReader& read) {
  if (const Turn turn(*this); turn && element_) return element_;
  std::vector<Element> records = read(name);
  if (records.empty()) return std::nullopt;
  Element first = records.front();
  if (const Turn turn(*this); turn && !element_) {
    element_ = first;
    name_ = name;
    records_ = std::move(records);
  }
  return first;
}

std::optional<std::vector<Element>> SampledFile::take(const std::string& name) {
  const Turn turn(*this);
  if (!turn || records_.empty()) return std::nullopt;
  std::vector<Element> records = std::exchange(records_, {});
  if (name_ != name) return std::nullopt;
  return records;
}

NodePtr range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  return std::make_shared<Range>(start, stop, step);
}
NodePtr slices(StructurePtr structure, std::vector<HostTensor> arrays) {
  return std::make_shared<Slices>(std::move(structure), std::move(arrays));
}
NodePtr elements(std::vector<Element> elements) {
  return std::make_shared<Elements>(std::move(elements));
}
NodePtr generator(std::function<Dataset::Generator()> start, ElementSpec spec) {
  return std::make_shared<Generated>(std::move(start), std::move(spec));
}
NodePtr reader(std::vector<std::string> names, Dataset::FileReader read, std::shared_ptr<SampledFile> sampled) {
  return std::make_shared<Reader>(std::move(names), std::move(read), std::move(sampled));
}

}  // namespace tandem::nodes
