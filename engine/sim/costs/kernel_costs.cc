#include "engine/sim/costs/kernel_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sim/costs/kernel_constants.h"

namespace tandem::sim {
namespace {

namespace constants = kernel_constants;
using Pass = ConvolutionShape::Pass;

std::int64_t divided_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

double elements_of_input(const ConvolutionShape& shape) {
  return static_cast<double>(shape.input_elements());
}

double elements_of_output(const ConvolutionShape& shape) {
  return static_cast<double>(shape.output_elements());
}

// Bytes of operands and results. A 1x1 convolution of stride 2 reads a quarter of its image, but the gradient of its
// input has zeros elsewhere, which are written. Weight gradients are added up in f32.
double convolution_bytes(const ConvolutionShape& shape, double element_bytes) {
  const bool skips = shape.kernel < shape.stride && shape.pass != Pass::input_gradient;
  const double skipped = skips ? static_cast<double>(shape.of_window(shape.stride)) : 1;
  const double activations = elements_of_input(shape) / skipped + elements_of_output(shape);
  const double weight_bytes = shape.pass == Pass::weight_gradient ? 4 : element_bytes;
  return activations * element_bytes + static_cast<double>(shape.weights()) * weight_bytes;
}

// With few channels the library pads them to what one vector load of the unit takes: 16 bytes.
ConvolutionShape padded(ConvolutionShape shape, const KernelRate& rate) {
  if (!rate.is_matrix_unit) return shape;
  const auto least = static_cast<std::int64_t>(16 / rate.element_bytes);
  if (shape.groups == 1 && shape.in_channels < least) shape.in_channels = least;
  const std::int64_t channels = std::min(shape.in_channels, shape.out_channels) / shape.groups;
  if (shape.groups > 1 && channels < constants::kGroupChannels) {  // groups side by side, with zeros between them
    shape.groups = std::max<std::int64_t>(1, shape.groups / divided_up(constants::kGroupChannels, channels));
  }
  return shape;
}

// Returns the product that computes a convolution whose operands are read as matrices, as in NVIDIA CUTLASS's
// implicit_gemm_convolution.
ProductShape implicit_product(const ConvolutionShape& shape) {
  const std::int64_t outputs = shape.images * shape.out_points();
  const std::int64_t in = shape.in_channels / shape.groups, out = shape.out_channels / shape.groups;
  const std::int64_t window = shape.of_window(shape.kernel);
  switch (shape.pass) {
    case Pass::forward:
      return {.m = outputs, .n = out, .k = in * window, .count = shape.groups};
    case Pass::weight_gradient:
      return {.m = out, .n = in * window, .k = outputs, .count = shape.groups};
    case Pass::input_gradient:
      break;
  }
  // If every input belongs to some window, products with the zeros that a stride inserts are skipped.
  const std::int64_t skipped = shape.kernel >= shape.stride ? shape.of_window(shape.stride) : 1;
  return {.m = shape.images * shape.in_points(),
          .n = in,
          .k = std::max<std::int64_t>(1, out * window / skipped),
          .count = shape.groups};
}

double load_bytes(const KernelRate& rate) {
  return rate.has_wide_loads ? std::max(rate.element_bytes, constants::kWideLoadBytes) : rate.element_bytes;
}

}  // namespace

KernelCosts::KernelCosts(const Figures& figures)
    : multiprocessors_(figures.multiprocessors),
      clock_hz_(figures.clock_hz > 0 ? figures.clock_hz : constants::kClock_hz),
      cache_bytes_per_s_(constants::kCacheBytesPerCycle * clock_hz_),
      streaming_bytes_per_s_(constants::kBandwidthShare * figures.memory_bandwidth),
      elements_per_s_(figures.multiprocessors * constants::kElementsInFlight /
                      (figures.memory_latency_s > 0 ? figures.memory_latency_s : constants::kMemoryLatency_s)) {}

double KernelCosts::bandwidth(double element_bytes) const {
  const double in_flight = elements_per_s_ * element_bytes;
  return 1 / std::sqrt(1 / (streaming_bytes_per_s_ * streaming_bytes_per_s_) + 1 / (in_flight * in_flight));
}

double KernelCosts::memory_s(double bytes, int kernels, double element_bytes, double charged_s) const {
  return bytes / bandwidth(element_bytes) + std::max(0.0, kernels * constants::kMemoryStart_s - charged_s);
}

double KernelCosts::product_s(const ProductShape& product, double bytes, const KernelRate& rate,
                              double charged_s) const {
  return std::max(compute_s(product, rate), bytes / bandwidth(load_bytes(rate))) +
         std::max(0.0, constants::kProductStart_s - charged_s);
}

double KernelCosts::compute_s(const ProductShape& product, const KernelRate& rate) const {
  double least = std::numeric_limits<double>::infinity();
  for (const constants::Tile& tile : constants::kTiles) {
    least = std::min(least, tiled_s(product, tile.rows, tile.columns, rate));
  }
  return least;
}

// Each multiprocessor computes a tile at a time; the last wave may leave some idle. Products with few tiles divide
// their depth. One without depth, such as the gradient of weights from a batch of no rows, only writes its result.
double KernelCosts::tiled_s(const ProductShape& product, std::int64_t rows, std::int64_t columns,
                            const KernelRate& rate) const {
  const auto tiles = static_cast<double>(divided_up(product.m, rows) * divided_up(product.n, columns) * product.count);
  const double flops_per_s = rate.flops_per_s * rate.product_share / multiprocessors_;
  const std::int64_t most_splits = std::clamp<std::int64_t>(product.k, 1, constants::kMostSplits);
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t splits = 1; splits <= most_splits; splits *= 2) {
    const auto depth = static_cast<double>(divided_up(product.k, splits));
    const double waves = std::ceil(tiles * static_cast<double>(splits) / multiprocessors_);
    const double compute = 2.0 * static_cast<double>(rows * columns) * depth / flops_per_s;
    const double load = static_cast<double>(rows + columns) * depth * rate.element_bytes / cache_bytes_per_s_;
    least = std::min(least, waves * std::max(compute, load));
    if (tiles * static_cast<double>(splits) > 4 * multiprocessors_) break;
  }
  return least;
}

// Each multiprocessor takes a block of queries of one head. Before and after its keys, and where the mask cuts through
// tiles, it works as if it had some keys more.
double KernelCosts::attention_s(const AttentionShape& shape, double bytes, const KernelRate& rate,
                                double charged_s) const {
  const auto queries = static_cast<double>(shape.count * shape.queries);
  const double pairs = shape.pairs() + queries * constants::kMoreKeys;
  const auto blocks = static_cast<double>(shape.count * divided_up(shape.queries, constants::kQueriesTogether));
  const double idle = std::max(1.0, multiprocessors_ / blocks);
  const double flops = pairs * 2 * static_cast<double>(shape.head_size);
  const double products_s = flops / (rate.flops_per_s * constants::kAttentionShare);
  const double exponentials_s =
      pairs * constants::kExposedExponentials / (constants::kExponentialsPerCycle * clock_hz_ * multiprocessors_);
  const double slowness = shape.is_first_version ? constants::kFirstVersionSlowness : 1;
  const double computed_s = slowness * idle * (products_s + (shape.makes_scores ? exponentials_s : 0));
  return std::max(computed_s, bytes / bandwidth(load_bytes(rate))) +
         std::max(0.0, constants::kProductStart_s - charged_s);
}

double KernelCosts::convolution_s(const ConvolutionShape& shape, KernelRate rate, double charged_s) const {
  rate.product_share = constants::kTrainingShare;
  rate.has_wide_loads = false;
  const ConvolutionShape computed = padded(shape, rate);
  const double direct_s = implicit_gemm_s(computed, rate, charged_s);
  if (rate.is_matrix_unit) return direct_s + (shape.channels_last ? 0 : transposes_s(computed, rate));
  const bool has_winograd = shape.kernel == 3 && shape.stride == 1 && shape.image_depth == 0;
  return has_winograd ? std::min(direct_s, winograd_s(computed, rate, charged_s)) : direct_s;
}

double KernelCosts::implicit_gemm_s(const ConvolutionShape& shape, const KernelRate& rate, double charged_s) const {
  return product_s(implicit_product(shape), convolution_bytes(shape, rate.element_bytes), rate, charged_s);
}

double KernelCosts::winograd_s(const ConvolutionShape& shape, const KernelRate& rate, double charged_s) const {
  const std::int64_t tiles = shape.images * divided_up(shape.out_height(), constants::kWinogradTile) *
                             divided_up(shape.out_width(), constants::kWinogradTile);
  const std::int64_t in = shape.in_channels / shape.groups, out = shape.out_channels / shape.groups;
  const ProductShape product = {.m = tiles, .n = out, .k = in, .count = constants::kWinogradProducts * shape.groups};
  const auto transformed =
      static_cast<double>(constants::kWinogradProducts * tiles * (shape.in_channels + shape.out_channels));
  const double transforms = (elements_of_input(shape) + transformed + elements_of_output(shape)) * rate.element_bytes;
  return product_s(product, transformed * rate.element_bytes, rate, charged_s) +
         memory_s(transforms, 2, rate.element_bytes);
}

// Matrix units read channels last: kernels for NCHW transpose their inputs first, each read and written once.
double KernelCosts::transposes_s(const ConvolutionShape& shape, const KernelRate& rate) const {
  const double input = shape.pass == Pass::input_gradient ? 0 : elements_of_input(shape);
  const double output = shape.pass == Pass::forward ? 0 : elements_of_output(shape);
  const int kernels = (input > 0 ? 1 : 0) + (output > 0 ? 1 : 0);
  return memory_s(2 * (input + output) * rate.element_bytes, kernels, rate.element_bytes);
}

}  // namespace tandem::sim
