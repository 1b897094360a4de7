#include "engine/mpi/launched_sockets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/mpi/join_watch.h"
#include "engine/mpi/transport/tcp_transport.h"
#include "engine/mpi/transport/transport_library.h"
#include "topologies/base/error.h"

namespace tandem::mpi {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

// Where one rank listens: its host, and the port.
struct RankAddress {
  std::string host, port;
};

std::string text_of(const RankAddress& address) {
  return address.host + "\n" + address.port;
}

RankAddress address_in(const std::string& text) {
  const std::size_t end = text.find('\n');
  return {text.substr(0, end), text.substr(end + 1)};
}

}  // namespace

bool launcher_keeps_others() {
  return is_set("OMPI_MCA_orte_enable_recovery") || is_set("TANDEM_RANK_SOCKETS");
}

std::string why_launch_loses_no_rank() {
  return "a rank that is lost ends this job, because the launcher ends the others: mpirun --enable-recovery leaves "
         "them "
         "alone (for other launchers that do, set TANDEM_RANK_SOCKETS=1)";
}

// MPI has ended when this returns, so that it has no part in what becomes of the ranks.
Transport& open_launched_sockets(Rank rank) {
  Socket listener = listen_anywhere();
  std::vector<std::string> all;
  TaskList ranks;
  {
    const JoinWatch watch(rank);
    Transport& transport = open_transport();
    if (transport.size() == 1) refuse_lone_rank(rank, transport.library());
    all = transport.gather(text_of({host_name(), port_of(listener)}));
    ranks.index = transport.rank();
    transport.finalize();
  }
  const std::string first_host = address_in(all.front()).host;
  const bool is_one_host =
      std::all_of(all.begin(), all.end(), [&](const std::string& text) { return address_in(text).host == first_host; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RankAddress address = address_in(all[i]);
    ranks.names.push_back(fmt::format("rank {} on {}", i, address.host));
    ranks.addresses.push_back(fmt::format("{}:{}", is_one_host ? "127.0.0.1" : address.host, address.port));
  }
  return open_tcp_transport(ranks, join_timeout_s(), std::move(listener));
}

void refuse_lone_rank(Rank rank, const std::string& library) {
  throw UnavailableError(
      fmt::format("engine 'mpi': the launcher says that there are {} processes, but {} finds itself alone; launch "
                  "with the mpirun of that MPI",
                  rank.count, library));
}

}  // namespace tandem::mpi
