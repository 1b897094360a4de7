// Shows a page to browsers of this machine.
#pragma once

#include <functional>
#include <string>

namespace tandem {

struct Served {
  std::string page;        // "/"
  std::string trace_file;  // "/trace.json", of any size; empty: there is none
};

// Whether this build has a server.
bool can_serve();

// Answers on 127.0.0.1 until Ctrl-C. `port` 0 takes a free one; `ready` is called with the address,
// "http://127.0.0.1:8080/". Throws UnavailableError without a server, Error when the port is taken.
void serve(const Served& served, int port, const std::function<void(const std::string& address)>& ready);

}  // namespace tandem
