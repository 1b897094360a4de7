// Measures kernels whose rates are not those of element-wise ops.
#include <algorithm>
#include <array>

#include "engine/layer_ops.h"
#include "scenarios/calibration/stages.h"
#include "topologies/base/error.h"

namespace tandem::calibration {
namespace {

constexpr std::int64_t kColumns = 128;  // as long as rows usually are

// What kernels need beside operands from the pool.
struct Extras {
  Tensor sums, more_sums;            // [kColumns]
  Tensor statistics;                 // two numbers for each row
  Tensor labels;                     // i32
  std::array<Tensor, 3> matrices{};  // of the products between kernels
};

constexpr std::int64_t kProductSide = 256;

std::int64_t rows_of(std::int64_t bytes, std::int64_t passes, std::int64_t columns) {
  return std::max<std::int64_t>(1, bytes / (4 * passes * columns));
}

Op cross_entropy(std::int64_t bytes, Pool& pool, const Extras& extras) {
  constexpr std::int64_t kClasses = 16;
  const std::int64_t rows = std::min(rows_of(bytes, 2, kClasses), extras.labels.element_count());
  return op::softmax_cross_entropy({.loss = extras.sums.flat_slice(0, 1),
                                    .gradient = pool.take_matrix(rows, kClasses),
                                    .correct = {},
                                    .logits = pool.take_matrix(rows, kClasses),
                                    .labels = extras.labels.flat_slice(0, rows)});
}

// A causal row sees half of its columns.
Op row_softmax(std::int64_t bytes, Pool& pool) {
  constexpr std::int64_t kSeen = kColumns / 2;
  const std::int64_t rows = rows_of(bytes, 2, kSeen);
  return op::softmax(pool.take_matrix(rows, kSeen), pool.take_matrix(rows, kSeen));
}

// Rows of heads, which become a matrix for each head.
Op split_heads(std::int64_t bytes, Pool& pool) {
  constexpr std::int64_t kHeads = 8, kWidth = kColumns / kHeads;
  const std::int64_t rows = rows_of(bytes, 2, kColumns);
  return op::copy_strided(pool.take(rows * kColumns), pool.take(rows * kColumns),
                          {.sizes = {1, kHeads, rows, kWidth},
                           .to_strides = {0, rows * kWidth, kWidth, 1},
                           .from_strides = {0, kWidth, kColumns, 1}});
}

Op normalize(std::int64_t bytes, Pool& pool, const Extras& extras) {
  const std::int64_t rows = rows_of(bytes, 2, kColumns);
  return op::normalize(pool.take_matrix(rows, kColumns), extras.statistics.view(0, {rows, 2}),
                       pool.take_matrix(rows, kColumns), pool.take(kColumns), pool.take(kColumns), 1e-5);
}

Op normalize_gradient(std::int64_t bytes, Pool& pool, const Extras& extras) {
  const std::int64_t rows = rows_of(bytes, 3, kColumns);
  return op::normalize_gradient(pool.take_matrix(rows, kColumns), pool.take_matrix(rows, kColumns),
                                pool.take_matrix(rows, kColumns), extras.statistics.view(0, {rows, 2}),
                                pool.take(kColumns), true);
}

Op parameter_gradients(std::int64_t bytes, Pool& pool, const Extras& extras) {
  const std::int64_t rows = rows_of(bytes, 2, kColumns);
  return op::normalize_parameter_gradients(extras.sums, extras.more_sums, pool.take_matrix(rows, kColumns),
                                           pool.take_matrix(rows, kColumns), extras.statistics.view(0, {rows, 2}),
                                           false);
}

Op activation_of(kernel::Activation activation, bool is_gradient, std::int64_t bytes, Pool& pool) {
  const std::int64_t count = rows_of(bytes, is_gradient ? 3 : 2, 1);
  const Tensor to = pool.take(count), a = pool.take(count);
  return is_gradient ? op::activation_gradient(activation, to, pool.take(count), a) : op::activate(activation, to, a);
}

// Makes an op of a kernel that reads and writes about `bytes`.
Op kernel_of(std::string_view name, std::int64_t bytes, Pool& pool, const Extras& extras) {
  const auto matrix = [&](std::int64_t passes) { return pool.take_matrix(rows_of(bytes, passes, kColumns), kColumns); };
  if (name == "add_bias") return op::add_bias(matrix(2), pool.take(kColumns));
  if (name == "sum_axis") return op::sum_axis(extras.sums, matrix(1), 0);
  if (name == "softmax") return cross_entropy(bytes, pool, extras);
  if (name == "row_softmax") return row_softmax(bytes, pool);
  if (name == "row_softmax_gradient") return op::softmax_gradient(matrix(3), matrix(3), matrix(3));
  if (name == "normalize") return normalize(bytes, pool, extras);
  if (name == "normalize_gradient") return normalize_gradient(bytes, pool, extras);
  if (name == "normalize_parameters") return parameter_gradients(bytes, pool, extras);
  if (name == "gelu") return activation_of(kernel::Activation::gelu, false, bytes, pool);
  if (name == "gelu_gradient") return activation_of(kernel::Activation::gelu, true, bytes, pool);
  if (name == "silu") return activation_of(kernel::Activation::silu, false, bytes, pool);
  if (name == "silu_gradient") return activation_of(kernel::Activation::silu, true, bytes, pool);
  if (name == "dropout") return op::dropout(matrix(2), matrix(2), 0.1, 1, {});
  if (name == "rotary") return op::rotary(matrix(2), matrix(2), {.width = kColumns / 2, .positions = 64});
  if (name == "copy_strided") return split_heads(bytes, pool);
  TANDEM_CHECK(name == "relu" || name == "relu_gradient" || name == "copy_many", "a kernel that nothing measures");
  const Tensor to = pool.take(rows_of(bytes, name == "relu_gradient" ? 3 : 2, 1));
  if (name == "relu") return op::relu(to, to);
  if (name == "relu_gradient") return op::relu_gradient(to, to, pool.take(to.element_count()));
  return op::copy_many({to}, {pool.take(to.element_count())});
}

// Processors lower their clocks for a millisecond after products, which use their widest vector units. The kernels of
// training steps run between products; without them, those with much arithmetic take less time.
void multiply(Device& device, const Extras& extras) {
  const auto& [product, left, right] = extras.matrices;
  launch_unmeasured(device.compute_stream(), op::gemm(product, left, right));
}

// Gradients are packed, and what was reduced is unpacked, by another stream than the one that has written them.
void write_on_other_stream(Device& device, const kernel::CopyMany& copy) {
  Stream& other = device.stream(kCommunicationStream);
  for (const Tensor& source : copy.from) launch_unmeasured(other, op::scale_add(source, source, 1, 0));
  device.compute_stream().wait(other.record());
}

// On processors, rates of kernels with much arithmetic are those of their arithmetic, at any size.
bool is_measured(const Plan& plan, std::string_view kernel, std::int64_t bytes) {
  constexpr std::array<std::string_view, 8> kSlow{"softmax", "row_softmax",   "gelu",    "gelu_gradient",
                                                  "silu",    "silu_gradient", "dropout", "rotary"};
  return bytes <= plan.most_bytes_of_arithmetic || std::ranges::find(kSlow, kernel) == kSlow.end();
}

}  // namespace

void measure_kernels(Worker& worker, const Plan& plan) {
  if (plan.kernel_bytes.empty()) return;
  std::vector<Pool> pools =
      pools_of(worker, DType::f32, std::max(plan.pool_bytes, 2 * largest(plan.kernel_bytes)), plan.pool_bytes);
  std::vector<Extras> extras;
  for (Device* device : worker.devices()) {
    extras.push_back(
        {.sums = device->allocate(DType::f32, {kColumns}),
         .more_sums = device->allocate(DType::f32, {kColumns}),
         .statistics = device->allocate(DType::f32, {2 * rows_of(largest(plan.kernel_bytes), 2, kColumns)}),
         .labels = device->allocate(DType::i32, {largest(plan.kernel_bytes) / 4})});
    device->compute_stream().launch(op::fill(extras.back().labels, 0));
    Pool& pool = pools[extras.size() - 1];
    for (Tensor& matrix : extras.back().matrices) {
      matrix = device->allocate(DType::f32, {kProductSide, kProductSide});
      device->compute_stream().launch(op::scale_add(matrix, pool.take_matrix(kProductSide, kProductSide), 1, 0));
    }
    device->compute_stream().launch(op::fill(extras.back().statistics, 1));
  }
  for (int round = 0; round < plan.repetitions; ++round) {
    plan.begin_round();
    for (const std::string_view name : kMeasuredKernels) {
      for (const std::int64_t bytes : plan.kernel_bytes) {
        if (!is_measured(plan, name, bytes)) continue;
        for (int i = 0; i < kPerRound; ++i) {
          for (std::size_t d = 0; d < pools.size(); ++d) {
            Op op = kernel_of(name, bytes, pools[d], extras[d]);
            op.name = kernel_label(name, bytes);
            Device& device = *worker.devices()[d];
            if (plan.has_products_between_kernels) multiply(device, extras[d]);
            if (name == "copy_many") write_on_other_stream(device, std::get<kernel::CopyMany>(op.kernel));
            device.compute_stream().launch(std::move(op));
          }
          if (name == "copy_many") synchronize_all(worker);
        }
        synchronize_all(worker);
      }
    }
  }
}

}  // namespace tandem::calibration
