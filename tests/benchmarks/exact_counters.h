// Counters of a benchmark that no other program on the machine changes: what one iteration did, by the records of its
// run, and how often it allocated. Their names begin with "exact."; ctest -R benchmark.exact compares them with those
// stored in tests/benchmarks/exact (exact_counts.cc).
//
// A program that includes this counts every `operator new` of each thread.
//
// Threads: each counts its own allocations; the rest is for the thread that has the State.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "engine/timeline.h"

namespace tandem {

// Sets "exact.<name>". The value is the same in every run, on every machine.
void set_exact(benchmark::State& state, const std::string& name, double value);

// Returns how often the calling thread has allocated from the heap.
std::int64_t heap_allocations();

// Sets "exact.allocations": those of the calling thread since heap_allocations() returned `before`, as the mean over
// the iterations. The count depends on how the program and its libraries were built, so that it is compared only where
// the context "build" is the same.
//
// Not for what reads files, where the lengths of paths decide, nor for what hands work to threads or streams, where
// queues grow by how far these have come.
void count_allocations(benchmark::State& state, std::int64_t before);

// Sets the exact counters of the work of one iteration: ops with their bytes and flops, copies, calls of collectives,
// and bytes on links. Only what began at `since_ns` or later counts, as the mean over `iterations`.
void count_work(benchmark::State& state, const Timeline& timeline, std::int64_t iterations = 1,
                Nanoseconds since_ns = 0);

// As above for the one run that `timeline` has, and sets "exact.simulated_ns", when its last record ended.
void count_simulation(benchmark::State& state, const Timeline& timeline);

}  // namespace tandem
