// Client of the Kubernetes API: JSON requests, retried with back-off while the server is
// unreachable or busy. Errors are one sentence each. Used by the engine's threads.
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

// Thread-safe: every call opens its own connection.
class KubeClient {
 public:
  // Makes no request. Runs the exec plugin if the configuration has one.
  static Result<std::unique_ptr<KubeClient>> Make(ClusterAccess access,
                                                  const Clock* clock = RealClock::Get());

  // Another client of the same cluster with the same credentials, whose calls are cancelled
  // separately by its own Shutdown and Interrupt.
  std::unique_ptr<KubeClient> Share() const;

  const std::string& name_space() const { return access_.name_space; }

  // Paths begin with "/api". Errors: Unavailable if the server is unreachable (after `patience`),
  // Unauthenticated, PermissionDenied (403; within 20 s of a failed connection it is retried),
  // NotFound, AlreadyExists (409), OutOfRange (410), InvalidArgument (400, 422), with the server's
  // message.
  Result<json::object> Get(const std::string& path) const;
  // Server-side apply with the field manager "shoal": creates or updates the object. Idempotent.
  Result<json::object> Apply(const std::string& path, const json::object& object) const;
  // Dry run of Apply; changes nothing.
  Status DryRunApply(const std::string& path, const json::object& object) const;
  Result<json::object> MergePatch(const std::string& path, const json::object& patch) const;
  // OK if the object does not exist. `options`: DeleteOptions.
  Status Delete(const std::string& path, const json::object& options) const;
  // A response that is text, such as a log.
  Result<std::string> Text(const std::string& path, size_t limit) const;
  // Opens a watch stream. Not retried, except that a busy server's Retry-After is waited for.
  Result<std::unique_ptr<net::HttpStream>> Watch(const std::string& path) const;
  // A WebSocket connection through the server to a pod. Not retried.
  Result<net::UpgradedChannel> Upgrade(
      const std::string& path,
      const std::vector<std::pair<std::string, std::string>>& headers) const;
  // A connection to the server with current credentials; expired ones are renewed.
  struct ServerConnection {
    std::shared_ptr<const net::HttpClient> http;  // with the client's certificate
    std::string authorization;                    // "Bearer …", or empty
  };
  Result<ServerConnection> Open() const;
  // The credentials of Open were rejected (401): they are renewed at the next call.
  void InvalidateCredentials() const { credentials_->InvalidateCredentials(); }

  // Ends the running calls with Cancelled or Unavailable. Any thread.
  void Interrupt();
  // As Interrupt, and disables the retries of later calls.
  void Shutdown();

 private:
  KubeClient(ClusterAccess access, std::shared_ptr<Credentials> credentials);
  Result<net::HttpReply> Call(const net::HttpRequest& request) const;
  Result<net::HttpReply> SendOnce(net::HttpRequest request) const;
  // Sends a request with current credentials, and once more with renewed ones if they are rejected.
  // `ask` sends it and returns the reply's status.
  Status SendAuthenticated(
      net::HttpRequest request,
      const std::function<Result<int>(const net::HttpClient&, const net::HttpRequest&)>& ask) const;
  Result<json::object> CallForObject(net::HttpRequest request) const;
  // `options` begin with "&"; `kind`: the content type.
  Result<json::object> Patch(const std::string& path, const char* options, const char* kind,
                             const json::object& body) const;
  // Whether the server was unreachable a short time ago.
  bool MayBeStarting() const;
  struct State;
  struct Interruption;
  // False if interrupted.
  bool Sleep(std::chrono::milliseconds time, const Interruption& interruption) const;

  const ClusterAccess access_;
  const std::shared_ptr<Credentials> credentials_;
  const std::unique_ptr<State> state_;

 public:
  ~KubeClient();
};

// The error for a reply whose status is not 2xx.
Status ErrorOf(const net::HttpReply& reply);
// Delay before the retry number `attempt` (0, 1, …): 100 ms, doubling to 5 s, with 50 % jitter.
std::chrono::milliseconds BackOff(int attempt, uint64_t chance);
// Delay after a reply of a busy server: at least its Retry-After, up to 30 s.
std::chrono::milliseconds WaitAfter(const net::HttpReply& reply, int attempt, uint64_t chance);

}  // namespace shoal::engine::kubernetes
