// The ops of transformer layers, forward and backward: engine/op.h says what an op is.
//
// Matrices are row by row. Floating-point operands of one op have one element type unless stated otherwise; sums are
// made in f32 (f64 for operands of f64). Results must not overlap operands unless stated otherwise. Each function
// checks shapes and element types (throws UsageError) and computes the cost.
#pragma once

#include <cstdint>

#include "engine/op.h"

namespace tandem::op {

// c[i] = alpha * op(a[i]) * op(b[i]) + beta * c[i] for each of `count` products: a is [count, m, k] ([count, k, m] when
// transposed), b [count, k, n] ([count, n, k]), c [count, m, n]. Products of f16 and bf16 run on GPUs only.
Op batched_gemm(Tensor c, Tensor a, Tensor b, bool transpose_a = false, bool transpose_b = false, double alpha = 1,
                double beta = 0);

// to = softmax(scale * a) along the last axis, shifted by each row's largest element. With `queries` > 0 it is causal:
// row r holds the scores of query first_query + r % queries, and sees columns up to that number; others become 0,
// whatever they contain. A row becomes NaN where what it sees contains NaN, the largest infinity, or nothing but the
// least one. `to` may be `a`.
using kernel::SoftmaxSettings;
Op softmax(Tensor to, Tensor a, SoftmaxSettings settings = {});
// to = scale * output * (gradient - the sum of gradient * output over the row). `to` may be `gradient`.
Op softmax_gradient(Tensor to, Tensor gradient, Tensor output, double scale = 1);

// Layer norm (Ba and others, arXiv:1607.06450), or RMS norm (Zhang and Sennrich, arXiv:1910.07467) if `shift` is empty,
// which subtracts no mean: to[r, :] = (a[r, :] - mean) * inverse * scale + shift, inverse = 1 / sqrt(variance +
// epsilon). `statistics` [rows, 2] (f32; f64 for f64) receives mean (0 for RMS) and inverse. scale and shift:
// [columns].
Op normalize(Tensor to, Tensor statistics, Tensor a, Tensor scale, Tensor shift, double epsilon);
// to = the gradient of `a`; `is_centered` is whether the norm subtracted means. `to` may be `gradient`.
Op normalize_gradient(Tensor to, Tensor gradient, Tensor a, Tensor statistics, Tensor scale, bool is_centered);
// of_scale [columns] = the sum over rows of gradient * (a - mean) * inverse; of_shift [columns] (may be empty) = that
// of gradient. With `accumulates` both are added to what is there.
Op normalize_parameter_gradients(Tensor of_scale, Tensor of_shift, Tensor gradient, Tensor a, Tensor statistics,
                                 bool accumulates);

// gelu: 0.5 a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) (Hendrycks and Gimpel, arXiv:1606.08415).
// silu: a / (1 + exp(-a)).
// to = activation(a); gradient: to = gradient * activation'(a). `to` may be `a` or `gradient`.
Op activate(kernel::Activation activation, Tensor to, Tensor a);
Op activation_gradient(kernel::Activation activation, Tensor to, Tensor gradient, Tensor a);

// to[i] = a[i] / (1 - rate) or 0, with probability `rate` (from 0, less than 1), decided by the element's number in the
// whole tensor of which `a` is a part, so that the same elements are dropped however it is divided: word number % 4 of
// Philox4x32-10 (Salmon and others, SC11) with key `seed` and counter number / 4, dropped where it is below
// rate * 2^32. The gradient is the same op. The number of element i: write first + i in the mixed radix of `sizes` (the
// first digit has no limit, a size of 1 has the digit 0); number = offset + the sum of digit * stride. By default it is
// first + i. `to` may be `a`.
using kernel::ElementNumbers;
Op dropout(Tensor to, Tensor a, double rate, std::uint64_t seed, const ElementNumbers& numbers);

// to[r, :] = table[indices[r] - first, :], or zeros where the table has no such row; with `accumulates`, adds instead.
// indices: i32 [rows].
Op gather_rows(Tensor to, Tensor table, Tensor indices, std::int64_t first, bool accumulates = false);
// table[indices[r] - first, :] += rows[r, :] for each r whose row the table has, in the order of r: the same sums on
// every run.
Op add_rows(Tensor table, Tensor rows, Tensor indices, std::int64_t first);

// to[to_first + i . to_strides] = from[from_first + i . from_strides] for all i below `sizes`; flat elements of any
// type. Strides of 0 in `from` repeat elements. Places in `to` are written once each.
using kernel::StridedCopy;
Op copy_strided(Tensor to, Tensor from, const StridedCopy& copy);

// Rotary position embedding (Su and others, arXiv:2104.09864) of a [rows, heads x width]: elements j and j + width / 2
// of a head are turned by the angle position * base^(-2 j / width), position = first + row % positions. `backward`
// turns the other way, which is the gradient. `to` may be `a`.
using kernel::RotarySettings;
Op rotary(Tensor to, Tensor a, RotarySettings settings);

// Cross entropy of logits whose columns are divided: this part has columns `first` onwards. maxima[r] = its largest
// logit of row r, of which the whole row's are then made elsewhere. NaN is passed over: the sums will contain it.
Op row_maxima(Tensor maxima, Tensor logits);
// sums[r] = the sum of exp(logit - maxima[r]); targets[r] = logit - maxima[r] of the label's column, 0 if another part
// has it. labels: i32 [rows]; sums, targets, maxima: [rows] of the logits' type.
Op exponential_sums(Tensor sums, Tensor targets, Tensor logits, Tensor maxima, Tensor labels, std::int64_t first);
// With the whole rows' maxima, sums and targets: loss[0] = loss_scale * the sum over rows of log(sums) - targets;
// gradient = gradient_scale * (exp(logit - maxima) / sums - one hot of the label). `gradient` may be `logits`. Either
// result may be empty.
using kernel::DividedCrossEntropy;
Op divided_cross_entropy(DividedCrossEntropy operands);

// Mixture of experts. `weights` [rows, experts] are 0 where a row does not go to an expert; every expert has room for
// all rows.
// to = a where it is among the `count` largest of its row (of equal ones, the first), else 0. NaN is larger than any
// number.
Op largest_of_rows(Tensor to, Tensor a, std::int64_t count);
// to[e, r, :] = a[r, :] where weights[r, e] is not 0, else 0; with `is_scaled`, times weights[r, e]. to: [experts,
// rows, columns].
Op dispatch_rows(Tensor to, Tensor a, Tensor weights, bool is_scaled);
// to[r, :] = the sum over e, in order, of a[e, r, :] where weights[r, e] is not 0; with `is_scaled`, times weights[r,
// e].
Op combine_rows(Tensor to, Tensor a, Tensor weights, bool is_scaled);
// to[r, e] = the product of a[e, r, :] and gradient[r, :] where weights[r, e] is not 0, else 0.
Op expert_weight_gradients(Tensor to, Tensor a, Tensor gradient, Tensor weights);

// Numbers of eight and four bits (engine/base/small_floats.h), on tensors of f32 only.
// maximum[0] = the largest of maximum[0], from 0, and the magnitudes of a. NaN is passed over.
Op raise_maximum(Tensor maximum, Tensor a);
// to = a, rounded to what a format has with its scales. Matrices are the last two axes of `a`, and each is divided into
// blocks; the last blocks of a side may be smaller. The scale of a block follows from its largest magnitude. `maximum`
// [1]: for scales of f32, it takes the place of the blocks' own; for those of e4m3 it must be there, as the largest
// magnitude of the tensor; for those of e8m0 there is none. NaN stays NaN. `to` may be `a`.
using kernel::QuantiseSettings;
Op quantise(Tensor to, Tensor a, QuantiseSettings settings, Tensor maximum = {});

}  // namespace tandem::op
