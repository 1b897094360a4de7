#include "strategies/input/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "strategies/base/errors.h"
#include "strategies/input/dataset.h"

namespace tandem {
namespace {

std::string_view name_of(Structure::Kind kind) {
  switch (kind) {
    case Structure::Kind::leaf:
      return "tensor";
    case Structure::Kind::tuple:
      return "tuple";
    case Structure::Kind::list:
      return "list";
    case Structure::Kind::map:
      return "map";
    case Structure::Kind::dataset:
      return "dataset";
  }
  TANDEM_UNREACHABLE("a Structure::Kind outside its enumerators");
}

[[noreturn]] void wrong_kind(std::string_view wanted, Structure::Kind found) {
  throw TypeError(fmt::format("expected an element that is a {}, found a {}", wanted, name_of(found)));
}

std::vector<const Element*> addresses(const std::vector<Element>& parts) {
  std::vector<const Element*> all;
  for (const Element& part : parts) all.push_back(&part);
  return all;
}

}  // namespace

std::size_t Structure::components() const {
  if (kind == Kind::leaf) return 1;
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                         [](std::size_t sum, const Structure& part) { return sum + part.components(); });
}

const StructurePtr& bare_structure() {
  static const StructurePtr bare = std::make_shared<const Structure>();
  return bare;
}

Element::Element(HostTensor tensor) : structure_(bare_structure()) {
  components_.push_back(std::move(tensor));
}

Element::Element(StructurePtr structure, std::vector<HostTensor> components)
    : structure_(std::move(structure)), components_(std::move(components)) {
  TANDEM_REQUIRE(structure_->components() == components_.size(), "an element of another structure");
}

Element Element::nest(Structure::Kind kind, std::vector<std::string> names, const std::vector<const Element*>& parts) {
  auto structure = std::make_shared<Structure>(Structure{.kind = kind, .names = std::move(names)});
  std::vector<HostTensor> components;
  for (const Element* part : parts) {
    if (part->is_dataset()) throw TypeError("datasets cannot be nested in an element");
    structure->parts.push_back(*part->structure_);
    components.insert(components.end(), part->components_.begin(), part->components_.end());
  }
  return {std::move(structure), std::move(components)};
}

Element Element::tuple(const std::vector<Element>& parts) {
  return nest(Structure::Kind::tuple, {}, addresses(parts));
}

Element Element::list(const std::vector<Element>& parts) {
  return nest(Structure::Kind::list, {}, addresses(parts));
}

Element Element::map(const std::map<std::string, Element>& parts) {
  std::vector<std::string> names;
  std::vector<const Element*> elements;
  for (const auto& [name, element] : parts) {
    names.push_back(name);
    elements.push_back(&element);
  }
  return nest(Structure::Kind::map, std::move(names), elements);
}

Element Element::of_dataset(Dataset dataset) {
  static const StructurePtr alone = std::make_shared<const Structure>(Structure{.kind = Structure::Kind::dataset});
  Element element(alone, {});
  element.dataset_ = std::make_shared<const Dataset>(std::move(dataset));
  return element;
}

bool Element::is_nest() const {
  return structure_->kind != Structure::Kind::leaf && structure_->kind != Structure::Kind::dataset;
}

const HostTensor& Element::tensor() const {
  if (structure_->kind != Structure::Kind::leaf) wrong_kind("tensor", structure_->kind);
  return components_.front();
}

const Dataset& Element::dataset() const {
  if (!dataset_) wrong_kind("dataset", structure_->kind);
  return *dataset_;
}

Element Element::operator[](std::size_t part) const {
  if (!is_nest()) wrong_kind("nest", structure_->kind);
  if (part >= structure_->parts.size()) {
    throw ValueError(fmt::format("part {} of an element of {} parts", part, structure_->parts.size()));
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < part; ++i) first += structure_->parts[i].components();
  const Structure& inner = structure_->parts[part];
  const auto begin = components_.begin() + static_cast<std::ptrdiff_t>(first);
  return {std::make_shared<const Structure>(inner),
          std::vector<HostTensor>(begin, begin + static_cast<std::ptrdiff_t>(inner.components()))};
}

Element Element::operator[](const std::string& name) const {
  if (structure_->kind != Structure::Kind::map) wrong_kind("map", structure_->kind);
  const auto found = std::find(structure_->names.begin(), structure_->names.end(), name);
  if (found == structure_->names.end()) throw KeyError(fmt::format("an element has no part '{}'", name));
  return (*this)[static_cast<std::size_t>(found - structure_->names.begin())];
}

bool Element::operator==(const Element& other) const {
  return *structure_ == *other.structure_ && components_ == other.components_ && dataset_ == other.dataset_;
}

bool TensorSpec::is_static() const {
  return std::find(dimensions.begin(), dimensions.end(), kUnknown) == dimensions.end();
}

std::string TensorSpec::text() const {
  std::string text(dtype ? tandem::name_of(*dtype) : "text");
  text += " [";
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (i > 0) text += ", ";
    text += dimensions[i] == kUnknown ? "?" : std::to_string(dimensions[i]);
  }
  return text + "]";
}

bool ElementSpec::is_static() const {
  return std::all_of(components.begin(), components.end(), [](const TensorSpec& spec) { return spec.is_static(); });
}

ElementSpec ElementSpec::with_rows(std::int64_t rows) const {
  ElementSpec changed = *this;
  for (TensorSpec& spec : changed.components) spec.dimensions.insert(spec.dimensions.begin(), rows);
  return changed;
}

ElementSpec ElementSpec::with_row_count(std::int64_t rows) const {
  ElementSpec changed = *this;
  for (TensorSpec& spec : changed.components) {
    if (!spec.dimensions.empty()) spec.dimensions.front() = rows;
  }
  return changed;
}

ElementSpec spec_of(const Element& element) {
  ElementSpec spec{.structure = element.structure()};
  for (const HostTensor& tensor : element.components()) {
    const auto dimensions = tensor.shape().dimensions();
    spec.components.push_back({.dtype = tensor.dtype(), .dimensions = {dimensions.begin(), dimensions.end()}});
  }
  return spec;
}

Element empty_element(const ElementSpec& spec) {
  std::vector<HostTensor> components;
  for (const TensorSpec& component : spec.components) {
    std::vector<std::int64_t> dimensions = component.dimensions;
    if (component.is_static() && !dimensions.empty()) dimensions.front() = 0;
    std::replace(dimensions.begin(), dimensions.end(), TensorSpec::kUnknown, std::int64_t{0});
    components.push_back(HostTensor::zeros(component.dtype, Shape(std::span<const std::int64_t>(dimensions))));
  }
  return {spec.structure, std::move(components)};
}

}  // namespace tandem
