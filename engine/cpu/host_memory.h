// The memory of a machine's CPUs.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/threads/block_pool.h"

namespace tandem::cpu {

// Makes a pool of blocks aligned to 64 bytes; large ones are on huge pages where the system grants them.
std::shared_ptr<threads::BlockPool> make_host_memory(std::size_t limit_bytes);

std::size_t physical_memory_bytes();

}  // namespace tandem::cpu
