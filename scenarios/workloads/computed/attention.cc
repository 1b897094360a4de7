#include "scenarios/workloads/computed/attention.h"

#include <algorithm>
#include <utility>

#include "engine/layer_ops.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

Heads heads_of(const StageState& state, std::size_t scores) {
  Heads heads = *state.flow(scores).heads;
  heads.count = state.layer(scores).gemm->count;
  return heads;
}

op::StridedCopy backwards(op::StridedCopy copy) {
  std::swap(copy.to_strides, copy.from_strides);
  return copy;
}

// Returns the projection whose output has queries, keys or values.
std::size_t projection_of(const StageState& state, std::size_t scores, bool LayerFlow::*has_role) {
  std::size_t layer = scores - 1;
  while (!(state.flow(layer).*has_role)) --layer;
  return layer;
}

bool exchanges_heads_in(const LayerDivision& division) {
  return division.context > 1 && division.context_exchange == ContextExchange::all_to_all;
}

}  // namespace

AttentionTensors::AttentionTensors(StageState& state, std::size_t scores)
    : state_(state),
      heads_(tandem::heads_of(state, scores)),
      tokens_(state.layer(scores).gemm->rows),
      exchanges_heads_(exchanges_heads_in(state.part().division)),
      own_heads_(heads_),
      own_tokens_(tokens_) {
  if (exchanges_heads_) {
    own_heads_.count *= state.part().division.context;
    own_tokens_ /= state.part().division.context;
  }
  for (std::size_t i = scores; i-- > 0 && state.flow(i).kind == LayerFlow::Kind::projection;) {
    is_rotary_ |= std::ranges::count(state.whole(i).then, Pointwise::rotary) > 0;
  }
  const StagePart& part = state.part();
  for (const auto& [role, has_role] :
       {std::pair(Role::queries, &LayerFlow::has_queries), std::pair(Role::keys, &LayerFlow::has_keys),
        std::pair(Role::values, &LayerFlow::has_values)}) {
    Matrices& mine = matrices_[static_cast<std::size_t>(role)];
    // Made with the projection, or from what other devices have whenever the products are computed.
    const std::size_t projection = projection_of(state, scores, has_role);
    mine.value = state.keep(exchanges_heads_ ? scores : projection, tokens_, width_of(role), state.dtype(), true);
    const std::int64_t elements = part.examples * tokens_ * width_of(role);
    const auto allocated = [&] { return state.device().allocate(state.dtype(), {elements}); };
    mine.gradient = allocated();
    if (exchanges_heads_) {
      mine.own = state.keep(projection, own_tokens_, width_of(role) * part.division.context, state.dtype(), true);
      mine.own_gradient = allocated();
      mine.raw = allocated();
      mine.whole = allocated();
    }
    if (role == Role::queries || !gathers()) continue;
    mine.raw = state.device().allocate(state.dtype(), {elements * part.division.context});
    mine.whole = state.device().allocate(state.dtype(), {elements * part.division.context});
  }
}

Tensor AttentionTensors::matrix(Role role, const Pass& pass) const {
  const std::int64_t rows = role == Role::queries ? heads_.sharing * tokens_ : tokens_;
  return matrices_[static_cast<std::size_t>(role)].value.at(pass).view(
      0, {pass.examples * heads_.groups(), rows, heads_.width});
}

Tensor AttentionTensors::gradient(Role role, const Pass& pass) const {
  return matrices_[static_cast<std::size_t>(role)].gradient.view(0, matrix(role, pass).shape());
}

Tensor AttentionTensors::gathered(Role role, const Pass& pass) const {
  return matrices_[static_cast<std::size_t>(role)].raw.flat_slice(0, pass.examples * all_tokens() * width_of(role));
}

Tensor AttentionTensors::whole(Role role, const Pass& pass, bool of_gradient) const {
  if (!gathers()) return of_gradient ? gradient(role, pass) : matrix(role, pass);
  return matrices_[static_cast<std::size_t>(role)].whole.view(
      0, {pass.examples * heads_.groups(), all_tokens(), heads_.width});
}

// From [example, device, its heads, token, element] to [device, example, its heads, token, element].
op::StridedCopy AttentionTensors::by_heads(Role role, const Pass& pass) const {
  const std::int64_t devices = state_.part().division.context, block = heads_of(role) * own_tokens_ * heads_.width;
  return {.sizes = {1, devices, pass.examples, block},
          .to_strides = {0, pass.examples * block, block, 1},
          .from_strides = {0, block, devices * block, 1}};
}

// From [device, example, head, its tokens, element] to [example, head, device, its tokens, element].
op::StridedCopy AttentionTensors::by_tokens(Role role, const Pass& pass) const {
  const std::int64_t devices = state_.part().division.context, heads = heads_of(role);
  const std::int64_t block = own_tokens_ * heads_.width;
  return {.sizes = {devices, pass.examples, heads, block},
          .to_strides = {block, heads * devices * block, devices * block, 1},
          .from_strides = {pass.examples * heads * block, heads * block, block, 1}};
}

Exchanged AttentionTensors::exchanged(Role role, const Pass& pass) const {
  const Matrices& mine = matrices_[static_cast<std::size_t>(role)];
  const std::int64_t count = pass.examples * tokens_ * width_of(role);
  return {.whole = mine.raw.flat_slice(0, count), .part = mine.whole.flat_slice(0, count)};
}

Exchanged AttentionTensors::to_heads(Role role, const Tensor& of_tokens, const Pass& pass) const {
  const Exchanged tensors = exchanged(role, pass);
  state_.launch(op::copy_strided(tensors.part, of_tokens, by_heads(role, pass)));
  return tensors;
}

Exchanged AttentionTensors::to_tokens(Role role, const Tensor& of_heads, const Pass& pass) const {
  const Exchanged tensors = exchanged(role, pass);
  state_.launch(op::copy_strided(tensors.part, of_heads, backwards(by_tokens(role, pass))));
  return tensors;
}

void AttentionTensors::put_heads(Role role, const Tensor& of_heads, const Pass& pass) const {
  state_.launch(op::copy_strided(of_heads, exchanged(role, pass).whole, by_tokens(role, pass)));
}

void AttentionTensors::put_tokens(Role role, const Tensor& of_tokens, const Pass& pass) const {
  state_.launch(op::copy_strided(of_tokens, exchanged(role, pass).whole, backwards(by_heads(role, pass))));
}

Tensor AttentionTensors::own(Role role, const Pass& pass, bool of_gradient) const {
  if (!exchanges_heads_) return of_gradient ? gradient(role, pass) : matrix(role, pass);
  const Matrices& mine = matrices_[static_cast<std::size_t>(role)];
  const std::int64_t count = pass.examples * tokens_ * width_of(role);
  const Tensor all = of_gradient ? mine.own_gradient : mine.own.at(pass);
  return all.view(0, {count / (own_tokens_ * heads_.width), own_tokens_, heads_.width});
}

std::int64_t AttentionTensors::first_head() const {
  const StagePart& part = state_.part();
  const int before = exchanges_heads_ ? part.tensor_part * part.division.context + part.context_part : part.tensor_part;
  return before * heads_.count;
}

// From [device, product, token, element] to [product, device and token, element].
void AttentionTensors::order_tokens(Role role, const Pass& pass) const {
  const std::int64_t devices = state_.part().division.context, products = pass.examples * heads_.groups();
  const std::int64_t block = tokens_ * heads_.width;
  state_.launch(op::copy_strided(whole(role, pass, false), gathered(role, pass),
                                 {.sizes = {1, devices, products, block},
                                  .to_strides = {0, block, devices * block, 1},
                                  .from_strides = {0, products * block, block, 1}}));
}

void AttentionTensors::order_devices(Role role, const Tensor& gradients, const Pass& pass) const {
  const std::int64_t devices = state_.part().division.context, products = pass.examples * heads_.groups();
  const std::int64_t block = tokens_ * heads_.width;
  state_.launch(op::copy_strided(gathered(role, pass), gradients,
                                 {.sizes = {1, devices, products, block},
                                  .to_strides = {0, products * block, block, 1},
                                  .from_strides = {0, block, devices * block, 1}}));
}

void AttentionTensors::divide_heads(std::size_t projection, const Tensor& output, const Pass& pass) const {
  copy(projection, output, pass, true);
  const LayerFlow& flow = state_.flow(projection);
  if (!is_rotary_) return;
  if (flow.has_queries) turn(own(Role::queries, pass, false), false);
  if (flow.has_keys) turn(own(Role::keys, pass, false), false);
}

// The gradient of the projection's output becomes known here.
void AttentionTensors::join_heads(std::size_t projection, const Tensor& output, const Pass& pass) const {
  const LayerFlow& flow = state_.flow(projection);
  if (is_rotary_ && flow.has_queries) turn(own(Role::queries, pass, true), true);
  if (is_rotary_ && flow.has_keys) turn(own(Role::keys, pass, true), true);
  const int producer = static_cast<int>(state_.part().first + projection);
  copy(projection, state_.gradient(producer, output), pass, false);
  state_.begin_gradient(producer);
}

void AttentionTensors::turn(const Tensor& matrix, bool backward) const {
  const Tensor rows = matrix.view(0, {matrix.element_count() / heads_.width, heads_.width});
  state_.launch(op::rotary(rows, rows,
                           {.width = heads_.width,
                            .positions = own_tokens_,
                            .first = state_.part().context_part * own_tokens_,
                            .backward = backward}));
}

// A projection to queries, keys and values has them by group: the queries of the group's heads, its keys, its values.
void AttentionTensors::copy(std::size_t projection, const Tensor& output, const Pass& pass, bool to_heads) const {
  const LayerFlow& flow = state_.flow(projection);
  const auto of = [&](Role role) { return own(role, pass, !to_heads); };
  const bool is_joint = flow.has_queries && flow.has_keys;
  if (!is_joint) {
    const Role role = flow.has_queries ? Role::queries : flow.has_keys ? Role::keys : Role::values;
    return copy_heads(of(role), output, role == Role::queries ? own_heads_.count : own_heads_.groups(), !to_heads,
                      pass);
  }
  const std::int64_t width = heads_.width, columns = output.shape()[1], sharing = heads_.sharing;
  const auto copy_one = [&](Role role, std::int64_t head_of_group, std::int64_t place) {
    const std::int64_t per_group = role == Role::queries ? sharing * own_tokens_ * width : own_tokens_ * width;
    const std::array<std::int64_t, 4> by_head{own_heads_.groups() * per_group, per_group, width, 1};
    const std::array<std::int64_t, 4> by_row{own_tokens_ * columns, (sharing + 2) * width, columns, 1};
    op::StridedCopy copy{.sizes = {pass.examples, own_heads_.groups(), own_tokens_, width}};
    (to_heads ? copy.to_strides : copy.from_strides) = by_head;
    (to_heads ? copy.from_strides : copy.to_strides) = by_row;
    (to_heads ? copy.to_first : copy.from_first) = head_of_group * own_tokens_ * width;
    (to_heads ? copy.from_first : copy.to_first) = place * width;
    state_.launch(to_heads ? op::copy_strided(of(role), output, copy) : op::copy_strided(output, of(role), copy));
  };
  for (std::int64_t head = 0; head < sharing; ++head) copy_one(Role::queries, head, head);
  copy_one(Role::keys, 0, sharing);
  copy_one(Role::values, 0, sharing + 1);
}

void AttentionTensors::copy_heads(const Tensor& by_head, const Tensor& rows, std::int64_t heads, bool to_rows,
                                  const Pass& pass) const {
  const std::int64_t width = heads_.width, columns = heads * width;
  op::StridedCopy copy{.sizes = {pass.examples, heads, own_tokens_, width}};
  (to_rows ? copy.from_strides : copy.to_strides) = {heads * own_tokens_ * width, own_tokens_ * width, width, 1};
  (to_rows ? copy.to_strides : copy.from_strides) = {own_tokens_ * columns, width, columns, 1};
  state_.launch(to_rows ? op::copy_strided(rows, by_head, copy) : op::copy_strided(by_head, rows, copy));
}

}  // namespace tandem
