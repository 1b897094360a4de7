#include "engine/mpi/remote/shared_tensors.h"

#include <fmt/format.h>

#include <utility>

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
  }
  void unlock() override {
    access_.say(process_, RemoteKind::unlock, [this](ByteWriter& bytes) { bytes.put(id_).put(changes_); });
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
  return static_cast<int>(hash % static_cast<std::uint64_t>(access_.processes()));
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
      return unlock(id, bytes.get<std::int64_t>());
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
  }
  tell(next, {});
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
    version = lock.version;
  }
  access_.answer(reply, [&](ByteWriter& bytes) { bytes.put(version); });
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
    lock.waiting.pop_front();
  }
  access_.answer(next, [&](ByteWriter& bytes) { bytes.put(version); });
}

}  // namespace tandem::mpi
