#include <algorithm>

#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"
#include "topologies/base/portable_math.h"

namespace tandem {
namespace {

// Cosines and sines of one position after the other, each for half a head.
template <typename W>
struct Turns {
  std::vector<W> cosines, sines;
};

template <typename W>
Turns<W> turns_of(const kernel::RotarySettings& settings, std::int64_t positions) {
  const std::int64_t half = settings.width / 2;
  std::vector<double> frequencies(static_cast<std::size_t>(half));
  for (std::int64_t j = 0; j < half; ++j) {
    frequencies[static_cast<std::size_t>(j)] =
        portable::pow(settings.base, -2 * static_cast<double>(j) / static_cast<double>(settings.width));
  }
  Turns<W> turns;
  for (std::int64_t position = settings.first; position < settings.first + positions; ++position) {
    for (const double frequency : frequencies) {
      const auto [sine, cosine] = portable::sine_cosine(static_cast<double>(position) * frequency);
      turns.cosines.push_back(static_cast<W>(cosine));
      turns.sines.push_back(static_cast<W>(settings.backward ? -sine : sine));
    }
  }
  return turns;
}

template <typename T>
void turn(T* to, const Wide<T>* a, std::int64_t half, const Wide<T>* cosines, const Wide<T>* sines) {
  for (std::int64_t j = 0; j < half; ++j) {
    to[j] = T(a[j] * cosines[j] - a[j + half] * sines[j]);
    to[j + half] = T(a[j + half] * cosines[j] + a[j] * sines[j]);
  }
}

}  // namespace

void execute_rotary(const kernel::Rotary& op) {
  const std::int64_t rows = op.a.shape()[0], columns = op.a.shape()[1], width = op.settings.width;
  with_floating_type(op.to.dtype(), "rotary", [&]<typename T>() {
    using W = Wide<T>;
    const Turns<W> turns = turns_of<W>(op.settings, std::min(rows, op.settings.positions));
    std::vector<W> a = wide_row<T>(columns);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row % op.settings.positions * (width / 2);
      widen<T>(a.data(), elements<T>(op.a) + row * columns, columns);
      for (std::int64_t head = 0; head < columns; head += width) {
        turn<T>(elements<T>(op.to) + row * columns + head, a.data() + head, width / 2, turns.cosines.data() + at,
                turns.sines.data() + at);
      }
    }
  });
}

}  // namespace tandem
