// What a server answers that does not lead: its health, and for everything else 503 with the
// address of the server that leads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/http/http_server.h"

namespace shoal::api {

// The handler of a standby. `leader` is called for each request, on an I/O thread.
std::function<void(std::shared_ptr<net::HttpExchange>)> StandbyHandler(
    std::function<std::string()> leader);

}  // namespace shoal::api
