// Dials the lanes of servers for a client: finds the address of the process that has a server's
// rows.
//
// Owned by ClientCore. Thread-safe. With replicas another server's process may have the rows of a
// server, so all addresses are tried, the last known one first.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "ps/client/client.h"
#include "ps/transport/transport.h"

namespace shoal::ps {

// Worth another try: no server there, a timeout, a server on its way down, or one that asks to
// wait.
bool IsTransient(const Status& status);

class ServerDialer {
 public:
  // Both outlive it.
  ServerDialer(const ClientOptions* options, Members* members);

  // The lane to dial, and the fields of the hello.
  struct Target {
    int server = 0;
    uint32_t lane = 0;
    uint64_t first_seq = 1;  // the lowest sequence number that may come
    uint64_t clock = 0;      // the worker's last clock
  };
  // Tries the server's addresses once. *address: the one that answered, or the last one tried.
  Result<OpenedConnection> Dial(const Target& target, std::string* address, Duration timeout);
  // Where the process that had the server's rows last is by this view; empty: not known.
  std::string PresentAddress(const MemberView& view, int server);

 private:
  static constexpr Duration kDialTimeout = std::chrono::seconds(5);
  static constexpr Duration kQuickDial = std::chrono::milliseconds(500);  // with others to try

  Result<OpenedConnection> DialAt(const Target& target, const std::string& address,
                                  Duration timeout);
  std::optional<size_t> PlaceOf(int server);
  void SetPlace(int server, size_t place);

  const ClientOptions* const options_;
  Members* const members_;
  const uint64_t session_;
  const std::unique_ptr<Transport> tcp_;
  std::unique_ptr<Transport> inproc_;  // null without a hub
  Mutex mu_;
  std::map<int, size_t> places_ GUARDED_BY(mu_);  // index of the address where it was found last
};

}  // namespace shoal::ps
