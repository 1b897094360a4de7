#include "strategies/training/random_generator.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <span>
#include <type_traits>

#include "engine/op.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/input/input_workers.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"
#include "strategies/variables/checkpoint.h"

namespace tandem {
namespace {

constexpr std::int64_t kWordsOfState = 6;
constexpr std::uint32_t kStreamOfSplit = 0xFFFFFFFF;  // the last word of its counter; a replica's is its id

PhiloxKey key_of(std::int64_t seed) {
  const auto bits = static_cast<std::uint64_t>(seed);
  return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)};
}

std::uint64_t long_word(const PhiloxWords& words, std::size_t first) {
  return words[first] | static_cast<std::uint64_t>(words[first + 1]) << 32;
}

// In [0, 1), with as many bits as the type has.
template <typename T>
T fraction(const PhiloxWords& words, std::size_t pair) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(words[2 * pair] >> 8) * 0x1p-24F;
  } else {
    return static_cast<double>(long_word(words, 2 * pair) >> 11) * 0x1p-53;
  }
}

// A rounded product may reach the upper bound, which is not in the interval.
template <typename T>
T scaled(T fraction, double minval, double maxval) {
  const T low = static_cast<T>(minval), high = static_cast<T>(maxval);
  const T result = low + fraction * (high - low);
  return result < high ? result : std::nextafter(high, low);
}

// Box and Muller's transformation: a radius and an angle.
template <typename T>
double standard_normal(const PhiloxWords& words) {
  const double radius = std::sqrt(-2 * std::log1p(-static_cast<double>(fraction<T>(words, 0))));
  return radius * std::cos(2 * std::numbers::pi * static_cast<double>(fraction<T>(words, 1)));
}

}  // namespace

RandomGenerator::RandomGenerator(Strategy& strategy, std::string name, PhiloxKey key)
    : strategy_(&strategy), name_(std::move(name)) {
  check_whole_program("a random generator's creation");
  StrategyExtended& extended = strategy.extended();
  std::size_t replicas = 1;
  if (&strategy != &default_strategy()) {
    if (extended.in_multi_worker_mode() && !extended.experimental_between_graph()) {
      throw NotImplementedError(fmt::format(
          "random generator '{}' under strategy '{}', whose coordinator schedules functions: these have no replica ids "
          "among all workers; make a generator for each worker outside the scope",
          name_, strategy.name()));
    }
    const InputWorkers workers = extended.implementation().input_workers();
    here_ = workers.devices.size();
    first_ = static_cast<std::size_t>(workers.pipeline_id) * here_;
    replicas = static_cast<std::size_t>(workers.num_workers) * here_;
  }
  streams_.resize(replicas + 1);
  state_ = default_strategy().create_variable({.name = name_ + "/state",
                                               .dtype = DType::i64,
                                               .shape = {static_cast<std::int64_t>(replicas) + 1, kWordsOfState},
                                               .trainable = false});
  writes_ = state_->write_count();
  start(key);
}

RandomGenerator RandomGenerator::from_seed(std::int64_t seed, const std::string& name) {
  return {get_strategy(), name, key_of(seed)};
}

void RandomGenerator::check_whole_program(const char* call) const {
  const ReplicaContext* replica = get_replica_context();
  const bool is_inside_run = replica && &replica->strategy() != &default_strategy();
  if (is_inside_run || (current_mode() && current_mode()->update_replica)) {
    throw RuntimeError(fmt::format("{} ('{}') is called inside run() or update(); call it once, outside", call, name_));
  }
}

void RandomGenerator::start(PhiloxKey key) {
  for (std::size_t row = 0; row < streams_.size(); ++row) {
    const bool is_last = row + 1 == streams_.size();
    streams_[row] = {};
    if (!is_last && !is_here(row)) continue;
    streams_[row] = {.counter = {0, 0, 0, is_last ? kStreamOfSplit : static_cast<std::uint32_t>(row)}, .key = key};
  }
  is_ahead_ = true;
}

void RandomGenerator::reset_from_seed(std::int64_t seed) {
  check_whole_program("reset_from_seed()");
  start(key_of(seed));
}

// If somebody has assigned the state, or a checkpoint has restored it, the streams go on from there.
void RandomGenerator::take_assigned_state() {
  if (state_->write_count() == writes_) return;
  const std::vector<double> words = host_values(state_->strategy().extended().worker(), state_->value());
  writes_ = state_->write_count();
  if (words.empty()) return;
  auto next = words.begin();
  for (Stream& stream : streams_) {
    for (std::uint32_t& word : stream.counter) word = static_cast<std::uint32_t>(static_cast<std::uint64_t>(*next++));
    for (std::uint32_t& word : stream.key) word = static_cast<std::uint32_t>(static_cast<std::uint64_t>(*next++));
  }
  is_ahead_ = false;
}

const std::shared_ptr<Variable>& RandomGenerator::state() {
  take_assigned_state();
  if (!is_ahead_) return state_;
  std::vector<double> words;
  for (const Stream& stream : streams_) {
    words.insert(words.end(), stream.counter.begin(), stream.counter.end());
    words.insert(words.end(), stream.key.begin(), stream.key.end());
  }
  state_->assign(Value(constant(state_->components().front().device(), words, state_->shape(), DType::i64)));
  writes_ = state_->write_count();
  is_ahead_ = false;
  return state_;
}

RandomGenerator::Place RandomGenerator::place(const char* call) {
  const ReplicaContext* replica = get_replica_context();
  const bool is_inside_run = replica && &replica->strategy() != &default_strategy();
  if (strategy_ != &default_strategy()) {
    if (!is_inside_run || &replica->strategy() != strategy_) {
      throw RuntimeError(
          fmt::format("{} of random generator '{}' is called outside run() of strategy '{}', in whose scope it was "
                      "made; it has a stream for each replica",
                      call, name_, strategy_->name()));
    }
    return {streams_[first_ + static_cast<std::size_t>(replica->local_replica_id())], replica->device()};
  }
  Device& host = strategy_->extended().worker().cpu();
  if (!is_inside_run) return {streams_.front(), host};
  const StrategyExtended& extended = replica->strategy().extended();
  if (extended.num_replicas_in_sync() > static_cast<int>(extended.worker_devices().size())) {
    throw RuntimeError(
        fmt::format("{} of random generator '{}' is called inside run() of strategy '{}', and was made outside its "
                    "scope: the replicas of different workers would draw the same numbers; make it in the scope",
                    call, name_, replica->strategy().name()));
  }
  return {streams_.front(), replica->device()};
}

// Fills a tensor with make.operator()<T>(words of its element).
template <typename Make>
Tensor RandomGenerator::drawn(const char* call, DType dtype, const Shape& shape, const Make& make) {
  take_assigned_state();
  const Place place = this->place(call);
  Device& host = default_strategy().extended().worker().cpu();
  const Tensor tensor = host.allocate(dtype, shape);
  const auto fill = [&]<typename T>() {
    const OpCost cost{.bytes = static_cast<double>(tensor.size_bytes()), .dtype = dtype};
    host.compute_stream().launch(op::host_function("random numbers", cost, [tensor, make, from = place.stream] {
      PhiloxWords counter = from.counter;
      for (T& element : tensor.values<T>()) {
        element = make.template operator()<T>(philox(counter, from.key));
        counter = advanced(counter, 1);
      }
    }));
  };
  switch (dtype) {
    case DType::f32:
      fill.template operator()<float>();
      break;
    case DType::f64:
      fill.template operator()<double>();
      break;
    case DType::i32:
      fill.template operator()<std::int32_t>();
      break;
    case DType::i64:
      fill.template operator()<std::int64_t>();
      break;
    default:
      throw TypeError(fmt::format("{} of type {}; it draws f32, f64, i32 and i64", call, name_of(dtype)));
  }
  place.stream.counter = advanced(place.stream.counter, static_cast<std::uint64_t>(shape.element_count()));
  is_ahead_ = true;
  return copy_on(place.device, tensor);
}

Tensor RandomGenerator::uniform(const Shape& shape, double minval, double maxval, DType dtype) {
  const bool is_whole = dtype == DType::i32 || dtype == DType::i64;
  if (!(minval < maxval)) throw ValueError(fmt::format("uniform() in [{}, {}), which is empty", minval, maxval));
  if (is_whole && (minval != std::trunc(minval) || maxval != std::trunc(maxval))) {
    throw ValueError(fmt::format("uniform() of integers in [{}, {}), whose bounds are not whole", minval, maxval));
  }
  const double limit = dtype == DType::i32 ? 0x1p31 : 0x1p53;
  if (is_whole && (minval < -limit || maxval > limit)) {
    throw ValueError(
        fmt::format("uniform() of {} in [{}, {}), beyond {} in size", name_of(dtype), minval, maxval, limit));
  }
  return drawn("uniform()", dtype, shape, [minval, maxval]<typename T>(const PhiloxWords& words) {
    if constexpr (std::is_integral_v<T>) {
      const auto range = static_cast<std::uint64_t>(maxval - minval);
      return static_cast<T>(static_cast<std::int64_t>(minval) + static_cast<std::int64_t>(long_word(words, 0) % range));
    } else {
      return scaled<T>(fraction<T>(words, 0), minval, maxval);
    }
  });
}

Tensor RandomGenerator::uniform_full_int(const Shape& shape, DType dtype) {
  if (dtype != DType::i32 && dtype != DType::i64) {
    throw TypeError(fmt::format("uniform_full_int() of type {}; it draws i32 and i64", name_of(dtype)));
  }
  return drawn("uniform_full_int()", dtype, shape, []<typename T>(const PhiloxWords& words) {
    return static_cast<T>(static_cast<std::int64_t>(long_word(words, 0)));
  });
}

Tensor RandomGenerator::normal(const Shape& shape, double mean, double stddev, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64) {
    throw TypeError(fmt::format("normal() of type {}; it draws f32 and f64", name_of(dtype)));
  }
  return drawn("normal()", dtype, shape, [mean, stddev]<typename T>(const PhiloxWords& words) {
    return static_cast<T>(mean + stddev * standard_normal<T>(words));
  });
}

void RandomGenerator::skip(std::int64_t count) {
  if (count < 0) throw ValueError(fmt::format("skip() of {} elements; it must not be negative", count));
  take_assigned_state();
  const auto move = [&](Stream& stream) {
    stream.counter = advanced(stream.counter, static_cast<std::uint64_t>(count));
  };
  const ReplicaContext* replica = get_replica_context();
  if (replica && &replica->strategy() != &default_strategy()) {
    move(place("skip()").stream);
  } else {
    for (std::size_t row = first_; row < first_ + here_; ++row) move(streams_[row]);
  }
  is_ahead_ = true;
}

std::vector<RandomGenerator> RandomGenerator::split(int count) {
  check_whole_program("split()");
  if (count < 0) throw ValueError(fmt::format("split() into {} generators; it must not be negative", count));
  take_assigned_state();
  std::vector<RandomGenerator> generators;
  for (int i = 0; i < count; ++i) {
    Stream& stream = streams_.back();
    const PhiloxWords words = philox(stream.counter, stream.key);
    stream.counter = advanced(stream.counter, 1);
    generators.push_back({*strategy_, fmt::format("{}/{}", name_, stream.counter[0]), {words[0], words[1]}});
  }
  is_ahead_ = true;
  return generators;
}

void RandomGenerator::add_to(Checkpoint& checkpoint) {
  const bool is_in_sync = strategy_->num_replicas_in_sync() + 1 == static_cast<int>(streams_.size());
  if (!is_in_sync) {
    throw NotImplementedError(
        fmt::format("random generator '{}' in a checkpoint under strategy '{}', whose workers do not wait for each "
                    "other: nobody knows the streams of all",
                    name_, strategy_->name()));
  }
  checkpoint.add(
      state_->name(),
      Checkpoint::Saveable{
          .dtype = state_->dtype(),
          .shape = state_->shape(),
          .strategy = strategy_,
          .saved = [this] { return saved(); },
          .restore = [this](const Tensor& saved) { restore(saved); },
          .explanation = fmt::format(
              "the state of a random generator has a row for each replica in sync, of which there are {} here, "
              "and one more",
              streams_.size() - 1)});
}

// The sum over the workers, of which the first one has the last row.
Tensor RandomGenerator::saved() {
  Tensor rows = state()->value();
  if (here_ + 1 == streams_.size()) return rows;
  Device& host = rows.device();
  const Tensor mine = host.allocate(rows.dtype(), rows.shape());
  host.compute_stream().copy(mine, rows);
  if (first_ > 0) host.compute_stream().launch(op::fill(mine.slice(rows.shape()[0] - 1, 1), 0));
  return strategy_->extended().implementation().reduce_over_workers(ReduceOp::sum, Value(mine)).tensor();
}

void RandomGenerator::restore(const Tensor& saved) {
  state_->assign(Value(saved));
  take_assigned_state();
  for (std::size_t row = 0; row + 1 < streams_.size(); ++row) {
    if (!is_here(row)) streams_[row] = {};
  }
  is_ahead_ = true;
}

}  // namespace tandem
