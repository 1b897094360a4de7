#include "cli/serve.h"

#include <fmt/format.h>

#include "topologies/base/error.h"

#ifdef TANDEM_HAS_SERVER
#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>

#include "cli/base/interrupt.h"

namespace tandem {
namespace {

using Response = std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)>;

struct Reply {
  unsigned status = MHD_HTTP_NOT_FOUND;
  const char* type = "text/plain";
  std::string_view text = "There is only / here.\n";
  const std::string* file = nullptr;  // in place of the text
};

// The library only reads memory that it is not told to free.
Response response_of_text(std::string_view text) {
  return {MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_PERSISTENT),
          MHD_destroy_response};
}

// Sends the file as it is now, part by part. The response closes it.
Response response_of_file(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (descriptor == -1 || fstat(descriptor, &facts) != 0) {
    if (descriptor != -1) close(descriptor);
    return {nullptr, MHD_destroy_response};
  }
  MHD_Response* const response = MHD_create_response_from_fd64(static_cast<std::uint64_t>(facts.st_size), descriptor);
  if (response == nullptr) close(descriptor);
  return {response, MHD_destroy_response};
}

// A page on another site may let its own name point to this machine, so only requests that name this machine are
// answered.
bool names_this_machine(MHD_Connection* connection) {
  const char* host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  const std::string_view name = host == nullptr ? "" : host;
  const std::string_view machine = name.substr(0, name.rfind(':'));
  return machine == "127.0.0.1" || machine == "localhost";
}

Reply reply_to(const Served& served, MHD_Connection* connection, std::string_view path, std::string_view method) {
  if (!names_this_machine(connection)) return {.status = MHD_HTTP_FORBIDDEN, .text = "Not a name of this machine.\n"};
  if (method != MHD_HTTP_METHOD_GET) return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .text = "Only GET.\n"};
  if (path == "/") return {.status = MHD_HTTP_OK, .type = "text/html; charset=utf-8", .text = served.page};
  if (path == "/trace.json" && !served.trace_file.empty()) {
    return {.status = MHD_HTTP_OK, .type = "application/json", .file = &served.trace_file};
  }
  return {};
}

MHD_Result answer(void* context, MHD_Connection* connection, const char* path, const char* method, const char*,
                  const char*, std::size_t* upload_size, void**) {
  if (*upload_size > 0) return MHD_NO;
  const Reply reply = reply_to(*static_cast<const Served*>(context), connection, path, method);
  const Response response = reply.file != nullptr ? response_of_file(*reply.file) : response_of_text(reply.text);
  if (!response) return MHD_NO;
  MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONTENT_TYPE, reply.type);
  MHD_add_response_header(response.get(), "X-Content-Type-Options", "nosniff");
  return MHD_queue_response(connection, reply.status, response.get());
}

}  // namespace

bool can_serve() {
  return true;
}

void serve(const Served& served, int port, const std::function<void(const std::string& address)>& ready) {
  const OrderlyEnd orderly_end;
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_port = htons(static_cast<std::uint16_t>(port));
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon(
      MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, answer, const_cast<Served*>(&served),
                       MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_END),
      MHD_stop_daemon);
  if (!daemon) throw Error(fmt::format("cannot serve on port {} of 127.0.0.1: it is taken or not allowed", port));
  ready(fmt::format("http://127.0.0.1:{}/", MHD_get_daemon_info(daemon.get(), MHD_DAEMON_INFO_BIND_PORT)->port));
  while (!interrupt_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace tandem
#else
namespace tandem {

bool can_serve() {
  return false;
}

void serve(const Served&, int, const std::function<void(const std::string& address)>&) {
  throw UnavailableError("this build has no server: libmicrohttpd was not found");
}

}  // namespace tandem
#endif
