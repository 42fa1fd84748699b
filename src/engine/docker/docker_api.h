// The calls of the Docker Engine API that we make (1.40 to 1.51), over the daemon's unix socket.
// Each answers or fails within a deadline; what comes back is decoded by decode.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/docker/decode.h"
#include "net/unix_http.h"

namespace shoal::engine::docker {

// Thread-safe: a call is a connection.
class DockerApi {
 public:
  // `host`: as DOCKER_HOST; empty: that variable, else unix:///var/run/docker.sock. Asks the daemon
  // for its version. One sentence if there is no daemon (Unavailable), if it may not be used
  // (PermissionDenied), or if it is too old or too new (FailedPrecondition).
  static Result<std::unique_ptr<DockerApi>> Connect(const std::string& host = "");
  // The path of the socket that `host` names; InvalidArgument for tcp:// and ssh://.
  static Result<std::string> SocketPath(const std::string& host);

  const std::string& version() const { return version_; }  // of the API, as it is spoken

  Result<Machine> GetMachine() const;
  // `job` empty: of all jobs. Stopped ones too.
  Result<std::vector<ContainerSummary>> List(const std::string& job) const;
  // Gives the new container's id. AlreadyExists if the name is taken, NotFound if the image is not
  // here.
  Result<std::string> Create(const std::string& name, const json::object& body) const;
  // NotFound with a text that names the program if there is no such program in the image.
  Status Start(const std::string& id, const std::string& program) const;
  // OK if it does not run (any more).
  Status Kill(const std::string& id, const std::string& signal) const;
  // With what it wrote, running or not. OK if it is gone.
  Status Remove(const std::string& id) const;
  Result<ContainerState> Inspect(const std::string& id_or_name) const;
  // The last `limit` bytes of both outputs together.
  Result<std::string> Logs(const std::string& id, size_t limit) const;
  // Ends and pauses of containers of ours, from `since` ("SECONDS.NANOSECONDS") on, without end.
  Result<std::unique_ptr<net::HttpStream>> Events(const std::string& since) const;

  // OK if it is there already.
  Status CreateNetwork(const json::object& body) const;
  // Those that carry the job's id. Nothing may be connected to them any more.
  Status RemoveNetworks(const std::string& job) const;

  Result<bool> HasImage(const std::string& image) const;
  // Of an image that is here.
  Result<EntryPoint> ImageEntryPoint(const std::string& image) const;
  // Until it is here. `login`: registry_auth.h's header for its registry, or nothing. `go_on` gets
  // the daemon's words, at most once a second, and empty ones while it says nothing; what it
  // returns, if not OK, ends the pull.
  Status Pull(const std::string& image, const std::string& login,
              const std::function<Status(const std::string&)>& go_on) const;
  // An image with nothing in it, for our own static programs.
  Status MakeEmptyImage(const std::string& repository, const std::string& tag) const;

  Result<std::string> CreateExec(const std::string& container, const json::object& body) const;
  // The connection carries what goes in and comes out.
  Result<net::Upgraded> StartExec(const std::string& exec) const;
  // Nothing while it runs.
  Result<std::optional<int>> ExecEnd(const std::string& exec) const;

 private:
  DockerApi(net::UnixHttp http, std::string version)
      : http_(std::move(http)), version_(std::move(version)) {}
  net::HttpRequest Request(const std::string& method, const std::string& target) const;
  net::HttpRequest Request(const std::string& method, const std::string& target,
                           const json::object& body) const;
  // The body of a reply with status 2xx or 304; else the error that fits.
  Result<std::string> Call(const net::HttpRequest& request) const;

  const net::UnixHttp http_;
  const std::string version_;
};

}  // namespace shoal::engine::docker
