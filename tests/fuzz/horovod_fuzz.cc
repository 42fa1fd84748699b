// Fuzz entry: what comes to Horovod's store. Pieces: connection, length, bytes. What is answered is
// bounded by what was heard, and a connection gives at most one request.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>

#include "rendezvous/framework_services/horovod_store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using shoal::rendezvous::HorovodRequestReader;
  using shoal::rendezvous::HorovodStore;
  auto store = HorovodStore::Make("worker-0:2 worker-1:1");
  if (!store.ok()) std::abort();
  std::map<int, HorovodRequestReader> open;
  for (size_t at = 0; at + 2 <= size;) {
    const int id = bytes[at] % 8;
    const size_t length = std::min<size_t>(bytes[at + 1], size - at - 2);
    auto request = open[id].Feed({reinterpret_cast<const char*>(bytes) + at + 2, length});
    at += 2 + length;
    if (request.ok() && !request->has_value()) continue;
    const std::string answer = request.ok() ? store->Answer(std::move(**request))
                                            : HorovodStore::Refusal(request.status());
    if (answer.size() > size + 300 || !answer.starts_with("HTTP/1.0 ")) std::abort();
    open.erase(id);
  }
  return 0;
}
