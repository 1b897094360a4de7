// tf.random.Generator: random numbers that follow from a seed, with a stream of its own for each replica.
//
// A generator belongs to the strategy that is current when it is made. Under a strategy, every replica in sync has its
// own stream, which depends on its id among all replicas and not on the workers they are spread over. Numbers are drawn
// inside run() (RuntimeError elsewhere), and each element takes one block of Philox 4x32-10. They are the same in every
// world with values: the worker's CPU makes them, and they are copied to the replica's device.
//
// A generator that is made outside every scope has one stream. Inside run() the replicas of one worker take from it in
// turn, as in TensorFlow. Replicas of several workers would draw the same numbers from their copies, so that is a
// RuntimeError.
//
// Threads: the strategy's own tasks, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/philox.h"
#include "strategies/variables/variable.h"

namespace tandem {

class Checkpoint;
class Worker;

class RandomGenerator {
 public:
  // Made in a cross-replica context or the default state (RuntimeError in a replica context). NotImplementedError under
  // a strategy whose coordinator schedules functions.
  static RandomGenerator from_seed(std::int64_t seed, const std::string& name = "generator");

  // Numbers in [minval, maxval), of f32 or f64, or of i32 or i64 with whole bounds, which for i64 are below 2^53 in
  // size. ValueError unless minval is less than maxval, TypeError for other types.
  Tensor uniform(const Shape& shape, double minval = 0, double maxval = 1, DType dtype = DType::f32);
  // Integers of i32 or i64 over their full range.
  Tensor uniform_full_int(const Shape& shape, DType dtype = DType::i64);
  // Numbers of f32 or f64, normally distributed (Box and Muller, 1958).
  Tensor normal(const Shape& shape, double mean = 0, double stddev = 1, DType dtype = DType::f32);

  // Moves on as if a tensor of `count` elements had been drawn: in a replica context this replica's stream, elsewhere
  // all of them. ValueError for a negative count.
  void skip(std::int64_t count);
  // Makes generators with other keys, under the same strategy, and moves on. Called as from_seed(), by all workers.
  std::vector<RandomGenerator> split(int count);
  // Starts again from a seed. Called as from_seed(), by all workers.
  void reset_from_seed(std::int64_t seed);

  // The state, brought up to date: i64 on the worker's CPU, a row for each replica in sync, of which those of other
  // workers' replicas are zero, and a last one for split(). A row is the counter, in four words of 32 bits, and the
  // key, in two. May be assigned.
  const std::shared_ptr<Variable>& state();
  // Adds the state of all replicas to a checkpoint; the generator must stay where it is. It is restored under a
  // strategy with as many replicas (ValueError otherwise). NotImplementedError for workers that do not wait for each
  // other.
  void add_to(Checkpoint& checkpoint);

 private:
  struct Stream {
    PhiloxWords counter{};
    PhiloxKey key{};
  };
  struct Place {  // of what is drawn
    Stream& stream;
    Device& device;
  };
  RandomGenerator(Strategy& strategy, std::string name, PhiloxKey key);

  void check_whole_program(const char* call) const;
  void start(PhiloxKey key);
  void take_assigned_state();
  bool is_here(std::size_t row) const { return row >= first_ && row < first_ + here_; }
  Place place(const char* call);
  template <typename Make>
  Tensor drawn(const char* call, DType dtype, const Shape& shape, const Make& make);
  Tensor saved();
  void restore(const Tensor& saved);

  Strategy* strategy_;
  std::string name_;
  std::size_t first_ = 0, here_ = 1;  // the rows of this worker's replicas
  std::vector<Stream> streams_;       // the last one is for split()
  std::shared_ptr<Variable> state_;
  std::optional<std::int64_t> writes_{};  // to state_, by us and up to now
  bool is_ahead_ = false;                 // of state_
};

}  // namespace tandem
