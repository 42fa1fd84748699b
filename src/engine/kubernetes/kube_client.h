// Calls of the Kubernetes API: JSON in and out, again with back-off while the server is away or
// busy, and one clear sentence for each refusal. The engine's threads use it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "engine/kubernetes/kube_config.h"
#include "net/http_client.h"

namespace shoal::engine::kubernetes {

// Thread-safe: a call is a connection.
class KubeClient {
 public:
  // Asks nothing yet, but an exec plugin where there is one.
  static Result<std::unique_ptr<KubeClient>> Make(ClusterAccess access,
                                                  const Clock* clock = RealClock::Get());

  // Another client of the same cluster, as the same user, with a GiveUp and Interrupt of its own.
  std::unique_ptr<KubeClient> Share() const;

  const std::string& name_space() const { return access_.name_space; }

  // Paths begin with "/api". Errors: Unavailable while the server is away (after `patience`),
  // Unauthenticated, PermissionDenied, NotFound, AlreadyExists (409), OutOfRange (410),
  // InvalidArgument (400, 422), with the server's own words.
  Result<json::object> Get(const std::string& path) const;
  // Server-side apply by the field manager "shoal": makes it, or makes it so. Idempotent.
  Result<json::object> Apply(const std::string& path, const json::object& object) const;
  // Whether the server would: nothing is made.
  Status Try(const std::string& path, const json::object& object) const;
  Result<json::object> MergePatch(const std::string& path, const json::object& patch) const;
  // OK if it is gone. `options`: DeleteOptions.
  Status Delete(const std::string& path, const json::object& options) const;
  // Text, as logs are.
  Result<std::string> Text(const std::string& path, size_t limit) const;
  // What a watch says, as it comes. Not again by itself; a server that is busy has been given the
  // time that it asked for.
  Result<std::unique_ptr<net::HttpStream>> Watch(const std::string& path) const;
  // A connection through the server to a pod; once.
  Result<net::UpgradedChannel> Upgrade(
      const std::string& path,
      const std::vector<std::pair<std::string, std::string>>& headers) const;
  // The way to the server, as whom we are now: what expires is renewed.
  struct ServerConnection {
    std::shared_ptr<const net::HttpClient> http;  // with the client's certificate
    std::string authorization;                    // "Bearer …", or empty
  };
  Result<ServerConnection> Open() const;
  // What Open gave was not accepted (401): it is asked for again.
  void Refused() const { credentials_->Refused(); }

  // Ends the calls under way, with Cancelled or Unavailable; from any thread.
  void Interrupt();
  // Likewise, and each later call that waits to be tried again.
  void GiveUp();

 private:
  KubeClient(ClusterAccess access, std::shared_ptr<Credentials> credentials);
  Result<net::HttpReply> Call(const net::HttpRequest& request) const;
  Result<net::HttpReply> Once(net::HttpRequest request) const;
  // Has it sent as whom we are now, once more if that is refused. `ask` gives the reply's status.
  Status AsOurselves(
      net::HttpRequest request,
      const std::function<Result<int>(const net::HttpClient&, const net::HttpRequest&)>& ask) const;
  Result<json::object> CallForObject(net::HttpRequest request) const;
  // `options` begin with "&"; `kind`: the content type.
  Result<json::object> Patch(const std::string& path, const char* options, const char* kind,
                             const json::object& body) const;
  struct State;
  struct Interruption;
  // False if it was interrupted.
  bool Sleep(std::chrono::milliseconds time, const Interruption& interruption) const;

  const ClusterAccess access_;
  const std::shared_ptr<Credentials> credentials_;
  const std::unique_ptr<State> state_;

 public:
  ~KubeClient();
};

// The error that a reply that is none of 2xx stands for.
Status ErrorOf(const net::HttpReply& reply);
// How long to wait before the next attempt, of `attempt` 0, 1, …: 100 ms, doubling to 5 s, half of
// it by chance.
std::chrono::milliseconds BackOff(int attempt, uint64_t chance);
// Likewise after a reply of a server that is busy: at least what its Retry-After says, up to 30 s.
std::chrono::milliseconds WaitAfter(const net::HttpReply& reply, int attempt, uint64_t chance);

}  // namespace shoal::engine::kubernetes
