// Client of the Docker Engine API (1.40 to 1.51) over the daemon's unix socket. Each call returns
// or fails within a deadline. Responses are decoded by decode.h.
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

// Thread-safe: every call opens its own connection.
class DockerApi {
 public:
  // `host`: as DOCKER_HOST; empty: that variable, else unix:///var/run/docker.sock. Asks the daemon
  // for its version. Unavailable if there is no daemon, PermissionDenied if this user may not use
  // it, FailedPrecondition if its version is not supported.
  static Result<std::unique_ptr<DockerApi>> Connect(const std::string& host = "");
  // The path of the socket that `host` names; InvalidArgument for tcp:// and ssh://.
  static Result<std::string> SocketPath(const std::string& host);

  const std::string& version() const { return version_; }  // negotiated API version

  Result<Machine> GetMachine() const;
  // Containers of a job, stopped ones included; `job` empty: of all jobs.
  Result<std::vector<ContainerSummary>> List(const std::string& job) const;
  // Returns the new container's id. AlreadyExists if the name is taken, NotFound if the image is
  // not present.
  Result<std::string> Create(const std::string& name, const json::object& body) const;
  // NotFound with a text that names the program if the image does not contain it.
  Status Start(const std::string& id, const std::string& program) const;
  // OK if the container does not run.
  Status Kill(const std::string& id, const std::string& signal) const;
  // Removes the container and its volumes, running or not. OK if it does not exist.
  Status Remove(const std::string& id) const;
  Result<ContainerState> Inspect(const std::string& id_or_name) const;
  // The last `limit` bytes of both outputs together.
  Result<std::string> Logs(const std::string& id, size_t limit) const;
  // Endless stream of ends and pauses of Shoal's containers since `since` ("SECONDS.NANOSECONDS").
  Result<std::unique_ptr<net::HttpStream>> Events(const std::string& since) const;

  // OK if it exists already.
  Status CreateNetwork(const json::object& body) const;
  // Removes the networks with the job's label. No container may be connected to them.
  Status RemoveNetworks(const std::string& job) const;

  Result<bool> HasImage(const std::string& image) const;
  // The default command of an image that is present.
  Result<EntryPoint> ImageEntryPoint(const std::string& image) const;
  // Pulls an image; returns when it is present. `login`: the X-Registry-Auth header
  // (registry_auth.h), or empty. `go_on` receives the daemon's progress text at most once a second,
  // empty while there is none; a status that is not OK ends the pull.
  Status Pull(const std::string& image, const std::string& login,
              const std::function<Status(const std::string&)>& go_on) const;
  // Creates an empty image, for Shoal's static launcher.
  Status MakeEmptyImage(const std::string& repository, const std::string& tag) const;

  Result<std::string> CreateExec(const std::string& container, const json::object& body) const;
  // The connection carries input and output of the command.
  Result<net::Upgraded> StartExec(const std::string& exec) const;
  // The exit code; nothing while the command runs.
  Result<std::optional<int>> ExecEnd(const std::string& exec) const;

 private:
  DockerApi(net::UnixHttp http, std::string version)
      : http_(std::move(http)), version_(std::move(version)) {}
  net::HttpRequest Request(const std::string& method, const std::string& target) const;
  net::HttpRequest Request(const std::string& method, const std::string& target,
                           const json::object& body) const;
  // The body of a reply with status 2xx or 304; other statuses become errors.
  Result<std::string> Call(const net::HttpRequest& request) const;

  const net::UnixHttp http_;
  const std::string version_;
};

}  // namespace shoal::engine::docker
