// Fuzz entry: replies of name servers. Nothing crashes, and what is taken has a port.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/srv_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto services = shoal::net::ParseSrvReply({reinterpret_cast<const char*>(data), size});
  if (!services.ok()) return 0;
  for (const shoal::net::Service& service : *services) {
    if (service.port == 0 || service.target.empty()) std::abort();
  }
  return 0;
}
