#include "engine/communicator.h"

#include "engine/task.h"

namespace tandem {

void Communicator::all_reduce(Tensors buffers, Reduction reduction, Streams streams) {
  check_and_call({.kind = CollectiveKind::all_reduce, .reduction = reduction}, buffers, buffers, streams);
}

void Communicator::reduce(Tensors buffers, Reduction reduction, int root_rank, Streams streams) {
  check_and_call({.kind = CollectiveKind::reduce, .reduction = reduction, .root = root_rank}, buffers, buffers,
                 streams);
}

void Communicator::broadcast(Tensors buffers, int root_rank, Streams streams) {
  check_and_call({.kind = CollectiveKind::broadcast, .root = root_rank}, buffers, buffers, streams);
}

void Communicator::all_gather(Tensors outputs, Tensors inputs, Streams streams) {
  check_and_call({.kind = CollectiveKind::all_gather}, outputs, inputs, streams);
}

void Communicator::reduce_scatter(Tensors outputs, Tensors inputs, Reduction reduction, Streams streams) {
  check_and_call({.kind = CollectiveKind::reduce_scatter, .reduction = reduction}, outputs, inputs, streams);
}

void Communicator::all_to_all(Tensors outputs, Tensors inputs, Streams streams) {
  check_and_call({.kind = CollectiveKind::all_to_all}, outputs, inputs, streams);
}

void Communicator::check_and_call(const CollectiveSpec& kind, Tensors outputs, Tensors inputs, Streams streams) {
  CollectiveSpec spec = check_operands(kind, *this, outputs, inputs, streams);
  spec.purpose = Task::current().purpose();
  call(spec, outputs, inputs, streams);
}

}  // namespace tandem
