#include "engine/cuda/kernels/device_types.cuh"

namespace tandem::cuda {
namespace {

// Rows of one index are taken in their order, by one thread for each column: equal inputs give equal results, those of
// the cpu engine. To find them the indices are sorted: runs by a block each, then pairs of runs are merged. Where there
// is no memory for that, or there are few, every block sorts the few of one launch.

// What a row goes to and its place among those of its turn, in one word: no two are equal.
using Key = unsigned long long;
constexpr int kPlaceBits = 16;
constexpr Key kNoRow = (Key{1} << 48) - 1;  // beyond every row: its index is out of range, or there is no such place
constexpr std::int64_t kMostOfTurn = std::int64_t{1} << kPlaceBits;

constexpr unsigned kFew = kThreads;  // what every block sorts for itself
constexpr unsigned kKeysOfThread = 4, kRun = kKeysOfThread * kThreads;

__device__ Key row_of(Key key) {
  return key >> kPlaceBits;
}

// `reports`: an index out of range is a fault, unless others have its row.
__device__ Key key_of(const ScatterArguments& arguments, std::int64_t place, bool reports, Fault* fault) {
  Key row = kNoRow;
  if (place < arguments.count) {
    const bool is_narrow = arguments.narrow_indices != nullptr;
    const std::int64_t index = is_narrow ? arguments.narrow_indices[place] - arguments.first : arguments.indices[place];
    if (index >= 0 && index < arguments.to_rows) {
      row = static_cast<Key>(index);
    } else if (reports && !is_narrow) {
      report(fault, Fault::row, place, index, arguments.to_rows);
    }
  }
  return row << kPlaceBits | static_cast<Key>(place);
}

// Whether the rows at both places of the sorted keys go to the same row.
template <typename Index>
__device__ bool are_equal(const Key* keys, Index count, Index one, Index other) {
  return other < count && row_of(keys[one]) == row_of(keys[other]);
}

// Each thread takes a column of the rows with one index, which begin at its place, and reads several of them before it
// uses the first. Halves are rounded at the end.
template <typename T, typename Index>
__device__ void change_columns(const ScatterArguments& arguments, const Key* keys, Fault* fault) {
  constexpr Index kAtOnce = 8;
  const Index count = static_cast<Index>(arguments.count), width = static_cast<Index>(arguments.width);
  const T* rows = static_cast<const T*>(arguments.rows);
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count * width; i += step) {
    const Index first = i / width, column = i - first * width;
    if (row_of(keys[first]) == kNoRow || (first > 0 && are_equal(keys, count, first, first - 1))) continue;
    T* to = static_cast<T*>(arguments.to) + static_cast<std::int64_t>(row_of(keys[first])) * arguments.width + column;
    Wide<T> value = arguments.replaces ? Wide<T>{} : load(to);
    for (Index next = first; are_equal(keys, count, first, next); next += kAtOnce) {
      Wide<T> values[kAtOnce]{};
      for (Index k = 0; k < kAtOnce; ++k) {
        if (!are_equal(keys, count, first, next + k)) continue;
        const auto place = static_cast<std::int64_t>(keys[next + k] & (kMostOfTurn - 1));
        values[k] = load(rows + place * arguments.width + column);
      }
      for (Index k = 0; k < kAtOnce; ++k) {
        if (!are_equal(keys, count, first, next + k)) continue;
        value = arguments.replaces ? values[k] : apply(arguments.operation, value, values[k], fault);
      }
    }
    store(to, value);
  }
}

// A key's place is the number of those that are less.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads, 1) change_few(ScatterArguments arguments, Fault* fault) {
  __shared__ Key keys[kFew];
  __shared__ Key sorted[kFew];
  keys[threadIdx.x] = key_of(arguments, threadIdx.x, blockIdx.x == 0, fault);
  __syncthreads();
  const auto count = static_cast<unsigned>(arguments.count);
  unsigned place = 0;
  for (unsigned i = 0; i < count; ++i) place += keys[i] < keys[threadIdx.x] ? 1 : 0;
  if (threadIdx.x < count) sorted[place] = keys[threadIdx.x];
  __syncthreads();
  change_columns<T, Index>(arguments, sorted, fault);
}

template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads, 1)
    change_sorted(ScatterArguments arguments, const Key* __restrict__ keys, Fault* fault) {
  change_columns<T, Index>(arguments, keys, fault);
}

__global__ void __launch_bounds__(kThreads) sort_runs(Key* to, ScatterArguments arguments, Fault* fault) {
  __shared__ Key keys[kRun];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kRun;
  Key mine[kKeysOfThread];
  unsigned places[kKeysOfThread];
  for (unsigned k = 0; k < kKeysOfThread; ++k) {
    const unsigned at = k * kThreads + threadIdx.x;
    keys[at] = mine[k] = key_of(arguments, begin + at, true, fault);
    places[k] = 0;
  }
  __syncthreads();
  for (unsigned i = 0; i < kRun; ++i) {
    for (unsigned k = 0; k < kKeysOfThread; ++k) places[k] += keys[i] < mine[k] ? 1 : 0;
  }
  for (unsigned k = 0; k < kKeysOfThread; ++k) to[begin + places[k]] = mine[k];
}

// Merges each run with the one behind it, if there is one: a key's place is its own in its run and the number of those
// in the other that are less.
__global__ void __launch_bounds__(kThreads)
    merge_runs(Key* __restrict__ to, const Key* __restrict__ from, unsigned run, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const unsigned pair = i / (2 * run) * (2 * run), begin = i / run * run;
  const unsigned other = begin == pair ? pair + run : pair;
  unsigned low = other < count ? other : count, high = other + run < count ? other + run : count;
  const unsigned first = low;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (from[middle] < from[i]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  to[pair + (i - begin) + (low - first)] = from[i];
}

// Sorts into the first or the second half of the scratch memory, which it returns.
const Key* sort(cudaStream_t stream, const Scratch& scratch, const ScatterArguments& turn, Fault* fault) {
  const unsigned runs = static_cast<unsigned>((turn.count + kRun - 1) / kRun), count = runs * kRun;
  Key* keys = static_cast<Key*>(scratch.at);
  Key* others = keys + scratch.bytes / sizeof(Key) / 2;
  start(sort_runs, runs, kThreads, stream, keys, turn, fault);
  for (unsigned run = kRun; run < count; run *= 2) {
    start(merge_runs, count / kThreads, kThreads, stream, others, keys, run, count);
    Key* const merged = others;
    others = keys;
    keys = merged;
  }
  return keys;
}

template <typename T, typename Index>
void scatter_turn(cudaStream_t stream, const Scratch& scratch, const ScatterArguments& turn, Fault* fault) {
  constexpr unsigned kMostThatSort = 1024;
  const unsigned blocks = blocks_for(turn.count * turn.width);
  if (turn.count <= kFew) {
    return start(change_few<T, Index>, blocks < kMostThatSort ? blocks : kMostThatSort, kThreads, stream, turn, fault);
  }
  const Key* keys = sort(stream, scratch, turn, fault);
  start(change_sorted<T, Index>, blocks, kThreads, stream, turn, keys, fault);
}

// Returns how many indices are sorted together: whole runs, of which the scratch memory holds two copies.
std::int64_t turn_of(const Scratch& scratch) {
  const auto room = scratch.at == nullptr ? 0 : static_cast<std::int64_t>(scratch.bytes / (2 * sizeof(Key)));
  if (room < kRun) return kFew;
  return room < kMostOfTurn ? room / kRun * kRun : kMostOfTurn;
}

}  // namespace

void launch_scatter(cudaStream_t stream, const Scratch& scratch, const ScatterArguments& arguments, Fault* fault) {
  if (arguments.count * arguments.width == 0) return;
  const std::int64_t most = turn_of(scratch);
  with_type(arguments.dtype, [&]<typename T>() {
    for (std::int64_t done = 0; done < arguments.count; done += most) {
      ScatterArguments turn = arguments;
      turn.rows = static_cast<const T*>(arguments.rows) + done * arguments.width;
      if (turn.indices != nullptr) turn.indices += done;
      if (turn.narrow_indices != nullptr) turn.narrow_indices += done;
      turn.count = arguments.count - done < most ? arguments.count - done : most;
      if (fits_narrow(turn.count * turn.width)) {
        scatter_turn<T, NarrowIndex>(stream, scratch, turn, fault);
      } else {
        scatter_turn<T, std::int64_t>(stream, scratch, turn, fault);
      }
    }
  });
}

}  // namespace tandem::cuda
