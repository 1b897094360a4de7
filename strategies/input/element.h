// The elements of datasets, which are tensors on the host, nested in tuples, lists and maps; and the form that all
// elements of a dataset share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/input/host_tensor.h"

namespace tandem {

class Dataset;

// The nesting of an element's components. Components are counted depth first, those of a map in the order of its keys.
struct Structure {
  enum class Kind : std::uint8_t { leaf, tuple, list, map, dataset };
  Kind kind = Kind::leaf;
  std::vector<std::string> names{};  // a map's keys
  std::vector<Structure> parts{};

  std::size_t components() const;
  bool operator==(const Structure&) const = default;
};
using StructurePtr = std::shared_ptr<const Structure>;
const StructurePtr& bare_structure();  // a single component

class Element {
 public:
  Element(HostTensor tensor);  // NOLINT(google-explicit-constructor): a tensor is an element
  Element(StructurePtr structure, std::vector<HostTensor> components);
  static Element tuple(const std::vector<Element>& parts);
  static Element list(const std::vector<Element>& parts);
  static Element map(const std::map<std::string, Element>& parts);
  static Element of_dataset(Dataset dataset);  // for datasets of datasets; cannot be nested

  const StructurePtr& structure() const { return structure_; }
  const std::vector<HostTensor>& components() const { return components_; }
  bool is_nest() const;

  // Each throws TypeError when the element is of another kind. KeyError for a name that the map does not have.
  const HostTensor& tensor() const;
  const Dataset& dataset() const;
  bool is_dataset() const { return dataset_ != nullptr; }
  Element operator[](std::size_t part) const;
  Element operator[](const std::string& name) const;

  bool operator==(const Element& other) const;

 private:
  static Element nest(Structure::Kind kind, std::vector<std::string> names, const std::vector<const Element*>& parts);

  StructurePtr structure_;
  std::vector<HostTensor> components_;
  std::shared_ptr<const Dataset> dataset_;
};

// tf.TensorSpec: the form of one component.
struct TensorSpec {
  static constexpr std::int64_t kUnknown = -1;
  std::optional<DType> dtype{};  // nothing: text
  std::vector<std::int64_t> dimensions{};

  bool is_static() const;
  std::string text() const;  // "i64 [?, 10]"
  bool operator==(const TensorSpec&) const = default;
};

struct ElementSpec {
  StructurePtr structure = bare_structure();
  std::vector<TensorSpec> components{};

  bool is_static() const;
  ElementSpec with_rows(std::int64_t rows) const;       // another axis in front
  ElementSpec with_row_count(std::int64_t rows) const;  // axis 0 changed
};
ElementSpec spec_of(const Element& element);
// Makes an element of no rows: unknown dimensions are 0 or, if all are known, the first one is.
Element empty_element(const ElementSpec& spec);

}  // namespace tandem
