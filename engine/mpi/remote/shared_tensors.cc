#include "engine/mpi/remote/shared_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/mpi/remote/device_service.h"
#include "engine/task.h"

namespace tandem::mpi {

class SharedTensors::LockedTensor final : public SharedTensor {
 public:
  LockedTensor(RemoteAccess& access, std::string name, Tensor tensor, const TensorRef& ref)
      : access_(access), name_(std::move(name)), tensor_(std::move(tensor)), process_(ref.process), id_(ref.id) {}

  const Tensor& tensor() const override { return tensor_; }
  void lock() override {
    const std::string answer = access_.ask(
        process_, RemoteKind::lock, [this](ByteWriter& bytes) { bytes.put(id_); },
        fmt::format("the lock of the shared tensor '{}'", name_));
    version_ = ByteReader(answer).get<std::int64_t>();
    changes_ = 0;
    access_.shared_tensors().note_locked({process_, id_});
  }
  void unlock() override {
    const std::uint64_t first = access_.shared_tensors().locked_by_caller(process_);
    access_.shared_tensors().note_unlocked({process_, id_});
    access_.say(process_, RemoteKind::unlock,
                [this, first](ByteWriter& bytes) { bytes.put(id_).put(changes_).put(first); });
  }
  std::int64_t version() const override { return version_ + changes_; }
  void note_change() override { ++changes_; }

 private:
  RemoteAccess& access_;
  const std::string name_;
  const Tensor tensor_;
  const int process_;
  const std::uint64_t id_;
  std::int64_t version_ = 0, changes_ = 0;  // guarded by the lock
};

// FNV-1a, equal in every process.
int SharedTensors::keeper_of(std::string_view name) const {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  const std::vector<int>& keepers = access_.keepers();
  return keepers[static_cast<std::size_t>(hash % keepers.size())];
}

std::shared_ptr<SharedTensor> SharedTensors::get(std::string_view name, const std::function<Tensor()>& make) {
  const std::string key(name);
  const std::string answer = access_.ask(
      keeper_of(name), RemoteKind::find, [&](ByteWriter& bytes) { bytes.put_text(key); },
      fmt::format("the shared tensor '{}', which another worker makes", name));
  ByteReader bytes(answer);
  if (!bytes.get<bool>()) return make_it(key, make);
  const TensorRef ref = get_ref(bytes);
  return std::make_shared<LockedTensor>(access_, key, access_.tensor_of(ref), ref);
}

std::shared_ptr<SharedTensor> SharedTensors::make_it(const std::string& name, const std::function<Tensor()>& make) {
  Tensor tensor;
  try {
    tensor = make();
  } catch (...) {
    access_.say(keeper_of(name), RemoteKind::not_made, [&](ByteWriter& bytes) { bytes.put_text(name); });
    throw;
  }
  // Others take it as made, whatever becomes of this process: its first value must not be on its way.
  if (access_.survives_losses()) tensor.device().synchronize();
  TensorRef ref = access_.ref_of(tensor);
  if (ref.process == access_.rank()) ref.id = access_.export_memory(tensor);
  access_.say(ref.process, RemoteKind::keep, [&](ByteWriter& bytes) { bytes.put(ref.id); });
  access_.say(keeper_of(name), RemoteKind::made, [&](ByteWriter& bytes) {
    bytes.put_text(name);
    put_ref(bytes, ref);
  });
  return std::make_shared<LockedTensor>(access_, name, std::move(tensor), ref);
}

void SharedTensors::handle(int from, RemoteKind kind, ByteReader& bytes) {
  switch (kind) {
    case RemoteKind::find: {
      const Reply reply{from, bytes.get<std::uint64_t>()};
      return find(reply, bytes.get_text());
    }
    case RemoteKind::made: {
      const std::string name = bytes.get_text();
      return note_made(name, get_ref(bytes));
    }
    case RemoteKind::not_made:
      return note_not_made(bytes.get_text());
    case RemoteKind::lock: {
      const Reply reply{from, bytes.get<std::uint64_t>()};
      return lock(reply, bytes.get<std::uint64_t>());
    }
    case RemoteKind::unlock: {
      const auto id = bytes.get<std::uint64_t>();
      const auto changes = bytes.get<std::int64_t>();
      access_.device_service().apply(from, bytes.get<std::uint64_t>());
      return unlock(id, changes);
    }
    default:
      TANDEM_UNREACHABLE("a message about shared tensors that is none");
  }
}

void SharedTensors::end() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  locks_.clear();
}

// Answers a request with the tensor, or with the order to make it.
void SharedTensors::tell(const Reply& reply, const std::optional<TensorRef>& ref) {
  access_.answer(reply, [&](ByteWriter& bytes) {
    bytes.put(ref.has_value());
    if (ref) put_ref(bytes, *ref);
  });
}

void SharedTensors::find(const Reply& reply, const std::string& name) {
  std::optional<TensorRef> made;
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_first] = entries_.try_emplace(name);
    made = found->second.made;
    if (!made && !is_first) {
      found->second.waiting.push_back(reply);
      return;
    }
    if (is_first) found->second.maker = reply.to;
  }
  tell(reply, made);
}

void SharedTensors::note_made(const std::string& name, const TensorRef& ref) {
  std::deque<Reply> waiting;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[name];
    entry.made = ref;
    waiting.swap(entry.waiting);
  }
  for (const Reply& reply : waiting) tell(reply, ref);
}

// Lets the next process that waits make the tensor.
void SharedTensors::note_not_made(const std::string& name) {
  Reply next;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(name);
    if (entry == entries_.end()) return;
    if (entry->second.waiting.empty()) {
      entries_.erase(entry);
      return;
    }
    next = entry->second.waiting.front();
    entry->second.waiting.pop_front();
    entry->second.maker = next.to;
  }
  tell(next, {});
}

void SharedTensors::grant(const Reply& reply, std::int64_t version) {
  access_.answer(reply, [&](ByteWriter& bytes) { bytes.put(version); });
}

void SharedTensors::lock(const Reply& reply, std::uint64_t id) {
  std::int64_t version = 0;
  {
    const std::lock_guard guard(mutex_);
    Lock& lock = locks_[id];
    if (lock.is_held) {
      lock.waiting.push_back(reply);
      return;
    }
    lock.is_held = true;
    lock.holder = reply.to;
    version = lock.version;
  }
  grant(reply, version);
}

void SharedTensors::unlock(std::uint64_t id, std::int64_t changes) {
  Reply next;
  std::int64_t version = 0;
  {
    const std::lock_guard guard(mutex_);
    Lock& lock = locks_[id];
    version = lock.version += changes;
    lock.is_held = !lock.waiting.empty();
    if (!lock.is_held) return;
    next = lock.waiting.front();
    lock.holder = next.to;
    lock.waiting.pop_front();
  }
  grant(next, version);
}

void SharedTensors::lose(int process) {
  const auto is_its_own = [process](const Reply& reply) { return reply.to == process; };
  std::vector<std::string> unmade;
  std::vector<std::uint64_t> locked;
  {
    const std::lock_guard guard(mutex_);
    for (auto& [name, entry] : entries_) {
      std::erase_if(entry.waiting, is_its_own);
      if (!entry.made && entry.maker == process) unmade.push_back(name);
    }
    for (auto& [id, lock] : locks_) {
      std::erase_if(lock.waiting, is_its_own);
      if (lock.is_held && lock.holder == process) locked.push_back(id);
    }
  }
  for (const std::string& name : unmade) note_not_made(name);
  for (const std::uint64_t id : locked) unlock(id, 0);
}

void SharedTensors::note_locked(const LockName& lock) {
  if (!access_.survives_losses()) return;
  const std::lock_guard guard(held_mutex_);
  held_[&Task::current()].push_back(lock);
}

void SharedTensors::note_unlocked(const LockName& lock) {
  if (!access_.survives_losses()) return;
  const std::lock_guard guard(held_mutex_);
  const auto found = held_.find(&Task::current());
  if (found == held_.end()) return;
  std::erase(found->second, lock);
  if (found->second.empty()) held_.erase(found);
}

std::uint64_t SharedTensors::locked_by_caller(int process) {
  if (!access_.survives_losses()) return 0;
  const std::lock_guard guard(held_mutex_);
  const auto found = held_.find(&Task::current());
  if (found == held_.end()) return 0;
  const auto first = std::ranges::find(found->second, process, &LockName::first);
  return first == found->second.end() ? 0 : first->second;
}

}  // namespace tandem::mpi
