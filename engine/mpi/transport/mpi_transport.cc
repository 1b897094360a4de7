// The only source that includes mpi.h. Nothing in it is specific to one MPI. MPI's own C++ interface, which MPI 3 has
// removed, is not used.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "engine/base/half.h"
#include "engine/mpi/transport/transport.h"

// clang-format off
#define TANDEM_MPI_FUNCTIONS(X) \
  X(Abort) X(Allgather) X(Allgatherv) X(Allreduce) X(Alltoallv) X(Bcast) X(Comm_create_group) X(Comm_dup) X(Comm_group) \
  X(Comm_rank) X(Comm_size) X(Finalize) X(Get_count) X(Get_library_version) X(Group_free) X(Group_incl) \
  X(Improbe) X(Init_thread) X(Initialized) X(Irecv) X(Isend) X(Mrecv) X(Op_create) X(Query_thread) X(Recv) X(Reduce) \
  X(Reduce_scatter) X(Send) X(Test) X(Type_commit) X(Type_contiguous) X(Type_create_struct) X(Type_free) \
  X(Type_size) X(Wait)
// clang-format on

namespace tandem::mpi {
namespace {

// MPI's functions. libsimgrid, which the program has already loaded, exports functions of the same names, so these are
// looked up in the libraries that this library itself is linked with.
struct MpiFunctions {
#define X(name) decltype(&MPI_##name) name;  // NOLINT(bugprone-macro-parentheses): a type and a member
  TANDEM_MPI_FUNCTIONS(X)
#undef X
};

const MpiFunctions& api() {
  static const MpiFunctions functions = [] {
    MpiFunctions found{};
#define X(name) found.name = reinterpret_cast<decltype(found.name)>(dlsym(RTLD_NEXT, "MPI_" #name));
    TANDEM_MPI_FUNCTIONS(X)
#undef X
    return found;
  }();
  return functions;
}

constexpr int kMessageTag = 1;
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;  // in one call, because MPI counts in int
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::f16:
    case DType::bf16:
      return MPI_UINT16_T;  // for operation_of()
    default:
      return MPI_DATATYPE_NULL;  // no CPU has tensors of other types
  }
}

// MPI has no halves, but takes functions of one's own. This library has none of the engine's kernels.
template <typename Number, Reduction reduction>
void reduce_halves(void* from_data, void* to_data, int* count, MPI_Datatype* /*type*/) {
  const auto* from = static_cast<const Number*>(from_data);
  auto* to = static_cast<Number*>(to_data);
  for (int i = 0; i < *count; ++i) {
    if constexpr (reduction == Reduction::sum) {
      to[i] = to[i] + from[i];
    } else if constexpr (reduction == Reduction::maximum) {
      to[i] = to[i] < from[i] ? from[i] : to[i];
    } else {
      to[i] = from[i] < to[i] ? from[i] : to[i];
    }
  }
}

template <typename Number, Reduction reduction>
MPI_Op half_operation() {
  static const MPI_Op operation = [] {
    MPI_Op made = MPI_OP_NULL;
    api().Op_create(reduce_halves<Number, reduction>, 1, &made);
    return made;
  }();
  return operation;
}

template <typename Number>
MPI_Op half_operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return half_operation<Number, Reduction::sum>();
    case Reduction::maximum:
      return half_operation<Number, Reduction::maximum>();
    case Reduction::minimum:
      return half_operation<Number, Reduction::minimum>();
  }
  return MPI_OP_NULL;
}

MPI_Op operation_of(DType dtype, Reduction reduction) {
  if (dtype == DType::f16) return half_operation_of<Float16>(reduction);
  if (dtype == DType::bf16) return half_operation_of<BFloat16>(reduction);
  switch (reduction) {
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::maximum:
      return MPI_MAX;
    case Reduction::minimum:
      return MPI_MIN;
  }
  return MPI_OP_NULL;
}

// A part of a collective as one element, however many bytes it has.
class PartType {
 public:
  explicit PartType(std::int64_t bytes) {
    if (bytes <= kMostBytes) {
      api().Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_);
      api().Type_commit(&type_);
      return;
    }
    const auto whole = static_cast<int>(bytes / kMostBytes), rest = static_cast<int>(bytes % kMostBytes);
    MPI_Datatype block = MPI_BYTE;
    api().Type_contiguous(static_cast<int>(kMostBytes), MPI_BYTE, &block);
    int lengths[2] = {whole, rest};
    MPI_Aint places[2] = {0, static_cast<MPI_Aint>(whole * kMostBytes)};
    MPI_Datatype types[2] = {block, MPI_BYTE};
    api().Type_create_struct(2, lengths, places, types, &type_);
    api().Type_commit(&type_);
    api().Type_free(&block);
  }
  ~PartType() { api().Type_free(&type_); }
  PartType(const PartType&) = delete;
  PartType& operator=(const PartType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class MpiTransfer final : public Transfer {
 public:
  explicit MpiTransfer(std::int64_t bytes) : part_(bytes) {}
  bool is_done() override {
    int done = 0;
    api().Test(&request_, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  MPI_Datatype type() const { return part_.get(); }
  MPI_Request& request() { return request_; }

 private:
  const PartType part_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

std::vector<int> places_of(std::span<const int> counts) {
  std::vector<int> places(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
  return places;
}

std::string library_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  api().Get_library_version(text, &length);
  const std::string whole(text, static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    api().Comm_dup(MPI_COMM_WORLD, &messages_);
    api().Comm_dup(MPI_COMM_WORLD, &data_);
    for (MPI_Comm& transfers : transfers_) api().Comm_dup(MPI_COMM_WORLD, &transfers);
    api().Comm_rank(MPI_COMM_WORLD, &rank_);
    api().Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string library() const override { return library_text(); }

  void post(int to, std::string text) override {
    const std::lock_guard lock(posted_mutex_);
    posted_.remove_if([](Posted& posted) {
      int done = 0;
      api().Test(&posted.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    Posted& posted = posted_.emplace_back();
    posted.text = std::move(text);
    api().Isend(posted.text.data(), static_cast<int>(posted.text.size()), MPI_BYTE, to, kMessageTag, messages_,
                &posted.request);
  }

  bool poll(Message& message) override {
    int found = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    api().Improbe(MPI_ANY_SOURCE, kMessageTag, messages_, &found, &handle, &status);
    if (found == 0) return false;
    int bytes = 0;
    api().Get_count(&status, MPI_BYTE, &bytes);
    message.from = status.MPI_SOURCE;
    message.text.resize(static_cast<std::size_t>(bytes));
    api().Mrecv(message.text.data(), bytes, MPI_BYTE, &handle, MPI_STATUS_IGNORE);
    return true;
  }

  std::vector<std::string> gather(const std::string& mine) override {
    const auto count = static_cast<std::size_t>(size_);
    std::int64_t bytes = static_cast<std::int64_t>(mine.size());
    std::vector<std::int64_t> all(count);
    api().Allgather(&bytes, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, data_);
    std::vector<std::string> texts;
    for (int from = 0; from < size_; ++from) {
      std::string text =
          from == rank_ ? mine : std::string(static_cast<std::size_t>(all[static_cast<std::size_t>(from)]), 0);
      broadcast_on(data_, from, text.data(), static_cast<std::int64_t>(text.size()));
      texts.push_back(std::move(text));
    }
    return texts;
  }

  void all_reduce(const Channel& channel, void* data, std::int64_t count, DType dtype, Reduction reduction) override {
    const MPI_Comm group = group_of(channel);
    each_part(data, count, dtype, [&](void* part, int elements) {
      api().Allreduce(MPI_IN_PLACE, part, elements, type_of(dtype), operation_of(dtype, reduction), group);
    });
  }
  void reduce(const Channel& channel, int root, void* data, std::int64_t count, DType dtype,
              Reduction reduction) override {
    const MPI_Comm group = group_of(channel);
    const bool is_root = channel.ranks[static_cast<std::size_t>(root)] == rank_;
    each_part(data, count, dtype, [&](void* part, int elements) {
      api().Reduce(is_root ? MPI_IN_PLACE : part, is_root ? part : nullptr, elements, type_of(dtype),
                   operation_of(dtype, reduction), root, group);
    });
  }
  void broadcast(const Channel& channel, int root, void* data, std::int64_t bytes) override {
    broadcast_on(group_of(channel), root, data, bytes);
  }
  void all_gather(const Channel& channel, const void* from, void* to, std::int64_t part_bytes,
                  std::span<const int> parts) override {
    const MPI_Comm group = group_of(channel);
    const PartType type(part_bytes);
    const std::vector<int> places = places_of(parts);
    int place = 0;
    api().Comm_rank(group, &place);
    api().Allgatherv(from, parts[static_cast<std::size_t>(place)], type.get(), to, parts.data(), places.data(),
                     type.get(), group);
  }
  void reduce_scatter(const Channel& channel, const void* from, void* to, std::span<const int> counts, DType dtype,
                      Reduction reduction) override {
    api().Reduce_scatter(from, to, counts.data(), type_of(dtype), operation_of(dtype, reduction), group_of(channel));
  }
  void all_to_all(const Channel& channel, const void* from, std::span<const int> send_parts, void* to,
                  std::span<const int> receive_parts, std::int64_t part_bytes) override {
    const PartType type(part_bytes);
    const std::vector<int> send_places = places_of(send_parts), receive_places = places_of(receive_parts);
    api().Alltoallv(from, send_parts.data(), send_places.data(), type.get(), to, receive_parts.data(),
                    receive_places.data(), type.get(), group_of(channel));
  }
  void send(int to, int tag, const void* data, std::int64_t bytes) override {
    const PartType type(bytes);
    api().Send(data, 1, type.get(), to, tag, data_);
  }
  void receive(int from, int tag, void* data, std::int64_t bytes) override {
    const PartType type(bytes);
    api().Recv(data, 1, type.get(), from, tag, data_, MPI_STATUS_IGNORE);
  }

  std::unique_ptr<Transfer> begin_send(int to, TagChooser chooser, int tag, const void* data,
                                       std::int64_t bytes) override {
    auto transfer = std::make_unique<MpiTransfer>(bytes);
    api().Isend(data, 1, transfer->type(), to, tag, comm_of(chooser), &transfer->request());
    return transfer;
  }
  std::unique_ptr<Transfer> begin_receive(int from, TagChooser chooser, int tag, void* data,
                                          std::int64_t bytes) override {
    auto transfer = std::make_unique<MpiTransfer>(bytes);
    api().Irecv(data, 1, transfer->type(), from, tag, comm_of(chooser), &transfer->request());
    return transfer;
  }

  [[noreturn]] void abort(int exit_code, const std::string&) override {
    api().Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);
  }
  void finalize() override {
    {
      const std::lock_guard lock(posted_mutex_);
      for (Posted& posted : posted_) api().Wait(&posted.request, MPI_STATUS_IGNORE);
      posted_.clear();
    }
    api().Finalize();
  }

 private:
  struct Posted {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  template <typename Call>
  static void each_part(void* data, std::int64_t count, DType dtype, Call&& call) {
    int element_bytes = 0;
    api().Type_size(type_of(dtype), &element_bytes);
    for (std::int64_t first = 0; first < count; first += kMostElements) {
      call(static_cast<std::byte*>(data) + first * element_bytes,
           static_cast<int>(std::min(kMostElements, count - first)));
    }
  }
  static void broadcast_on(MPI_Comm group, int root, void* data, std::int64_t bytes) {
    for (std::int64_t first = 0; first < bytes; first += kMostBytes) {
      api().Bcast(static_cast<std::byte*>(data) + first, static_cast<int>(std::min(kMostBytes, bytes - first)),
                  MPI_BYTE, root, group);
    }
  }
  // Returns the group's MPI communicator, which its ranks make together at the first use. Several groups may be made at
  // the same time.
  MPI_Comm group_of(const Channel& channel) {
    if (channel.group == 0 && static_cast<int>(channel.ranks.size()) == size_) return data_;
    const Key key{{channel.ranks.begin(), channel.ranks.end()}, channel.group};
    {
      const std::lock_guard lock(groups_mutex_);
      if (const auto found = groups_.find(key); found != groups_.end()) return found->second;
    }
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    api().Comm_group(data_, &all);
    api().Group_incl(all, static_cast<int>(key.first.size()), key.first.data(), &some);
    api().Comm_create_group(data_, some, channel.tag, &made);
    api().Group_free(&some);
    api().Group_free(&all);
    const std::lock_guard lock(groups_mutex_);
    groups_.emplace(key, made);
    return made;
  }

  MPI_Comm comm_of(TagChooser chooser) const { return transfers_[static_cast<std::size_t>(chooser)]; }

  MPI_Comm messages_ = MPI_COMM_NULL, data_ = MPI_COMM_NULL;
  MPI_Comm transfers_[2] = {MPI_COMM_NULL, MPI_COMM_NULL};  // by TagChooser
  int rank_ = 0, size_ = 1;
  std::mutex posted_mutex_;  // guards posted_
  std::list<Posted> posted_;
  std::mutex groups_mutex_;                                // guards groups_
  using Key = std::pair<std::vector<int>, std::uint64_t>;  // ranks and group
  std::map<Key, MPI_Comm> groups_;
};

}  // namespace
}  // namespace tandem::mpi

extern "C" __attribute__((visibility("default"))) tandem::mpi::Transport* tandem_open_mpi_transport(
    std::string& reason) {
  int provided = MPI_THREAD_SINGLE, is_initialized = 0;
  tandem::mpi::api().Initialized(&is_initialized);
  if (is_initialized == 0) {
    tandem::mpi::api().Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  } else {
    tandem::mpi::api().Query_thread(&provided);
  }
  if (provided < MPI_THREAD_MULTIPLE) {
    reason = "it gives no MPI_THREAD_MULTIPLE, which several streams need";
    return nullptr;
  }
  static auto* const transport = new tandem::mpi::MpiTransport();  // outlives everything that may still leave the job
  return transport;
}

extern "C" __attribute__((visibility("default"))) void tandem_describe_mpi(std::string& library) {
  library = tandem::mpi::library_text();
}
