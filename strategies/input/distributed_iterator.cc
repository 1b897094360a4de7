#include "strategies/base/errors.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/input/distributed_input.h"
#include "strategies/input/staging.h"
#include "strategies/strategy/context.h"

namespace tandem {
namespace {

void check_context() {
  const Mode* mode = current_mode();
  if (mode && mode->replica) {
    throw ValueError("a distributed iterator cannot be advanced in a replica context; do it outside of run()");
  }
}

}  // namespace

const Value& OptionalValue::get_value() const {
  if (!value_) throw InvalidArgumentError("an optional without a value was asked for it");
  return *value_;
}

DistributedIterator::DistributedIterator(std::shared_ptr<const DistributedInput> input) : input_(std::move(input)) {
  for (std::size_t i = 0; i < input_->datasets.size(); ++i) {
    iterators_.push_back(input_->datasets[i].iterator(input_->memories[i]));
  }
}

ElementSpec DistributedIterator::element_spec() const {
  return input_->element_spec();
}

// Returns whether there is another step. Every worker asks in every step, as InputWorkers::any_worker_has_data
// requires.
bool DistributedIterator::goes_on(bool has_data) {
  const InputWorkers& workers = input_->workers;
  if (input_->is_infinite || workers.num_workers == 1 || !workers.enable_partial_batch_handling) return has_data;
  if (input_->datasets_of_workers.empty()) {
    return workers.any_worker_has_data ? workers.any_worker_has_data(has_data) : has_data;
  }
  if (has_data) return true;
  if (!steps_of_all_workers_) steps_of_all_workers_ = input_->steps_of_all_workers();
  return steps_fetched_ < *steps_of_all_workers_;
}

void DistributedIterator::fetch(Elements elements) {
  Step step;
  bool has_data = false;
  step.is_complete = true;
  try {
    for (std::size_t d = 0; d < input_->workers.devices.size(); ++d) {
      step.elements.push_back(iterators_[d % iterators_.size()].next());
      (step.elements.back() ? has_data : step.is_complete) = step.elements.back().has_value();
    }
    has_ended_ = !goes_on(has_data);
    if (has_ended_) return;
    const bool is_given = step.is_complete || input_->may_be_partial;
    if (is_given && elements == Elements::go_to_devices) bring(step);
  } catch (...) {  // the steps before it come first
    step.error = std::current_exception();
    has_ended_ = true;
  }
  ++steps_fetched_;
  ahead_.push_back(std::move(step));
}

void DistributedIterator::bring(Step& step) const {
  std::optional<ElementSpec> found;
  for (const auto& element : step.elements) {
    if (element) found = spec_of(*element).with_row_count(TensorSpec::kUnknown);
  }
  const bool is_known = !input_->spec.components.empty();
  if (!is_known && !found) throw ValueError("no element tells the form of an empty one");
  std::vector<Element> elements;
  for (const auto& element : step.elements) {
    elements.push_back(element ? *element : empty_element(is_known ? input_->spec : *found));
  }
  const InputWorkers& workers = input_->workers;
  Device& host = workers.host ? *workers.host : workers.worker.cpu();
  StagedElements staged = stage(workers.worker, host, workers.devices, elements, input_->fetches_to_device());
  step.value = std::move(staged.value);
  step.ready = std::move(staged.ready);
}

// Returns the next step that has been fetched, or nothing at the end.
std::optional<DistributedIterator::Step> DistributedIterator::take(bool gives_partial_steps) {
  if (ahead_.empty()) return std::nullopt;
  Step step = std::move(ahead_.front());
  ahead_.pop_front();
  if (step.error) std::rethrow_exception(step.error);
  if (!step.is_complete && !gives_partial_steps) {
    has_ended_ = true;
    ahead_.clear();
    return std::nullopt;
  }
  return step;
}

std::optional<Value> DistributedIterator::deliver(bool gives_partial_steps) {
  check_context();
  while (!has_ended_ && ahead_.size() < input_->steps_ahead) fetch(Elements::go_to_devices);
  std::optional<Step> step = take(gives_partial_steps);
  if (!step) return std::nullopt;
  if (!step->value) bring(*step);
  for (std::size_t d = 0; d < step->ready.size(); ++d) {
    input_->workers.devices[d]->compute_stream().wait(step->ready[d]);
  }
  return step->value;
}

std::int64_t DistributedIterator::skip(std::int64_t steps) {
  check_context();
  std::int64_t skipped = 0;
  while (skipped < steps) {
    if (ahead_.empty() && input_->is_infinite && !has_ended_) {
      pass_over(steps - skipped);
      return steps;
    }
    if (ahead_.empty() && !has_ended_) fetch(Elements::stay);
    if (!take(input_->may_be_partial)) break;
    ++skipped;
  }
  return skipped;
}

// Consecutive elements are those of consecutive replicas; there is no end.
void DistributedIterator::pass_over(std::int64_t steps) {
  const auto replicas = static_cast<std::int64_t>(input_->workers.devices.size());
  const auto iterators = static_cast<std::int64_t>(iterators_.size());
  for (std::int64_t i = 0; i < iterators; ++i) {
    const std::int64_t of_step = replicas / iterators + (i < replicas % iterators ? 1 : 0);
    iterators_[static_cast<std::size_t>(i)].skip(steps * of_step);
  }
  steps_fetched_ += steps;
}

std::optional<Value> DistributedIterator::next() {
  return deliver(input_->may_be_partial);
}

Value DistributedIterator::get_next() {
  std::optional<Value> value = next();
  if (!value) throw OutOfRangeError("the end of the distributed dataset");
  return *std::move(value);
}

OptionalValue DistributedIterator::get_next_as_optional() {
  return OptionalValue(deliver(!input_->is_infinite));
}

}  // namespace tandem
