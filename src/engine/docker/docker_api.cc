#include "engine/docker/docker_api.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "base/log.h"
#include "net/http_status.h"

namespace shoal::engine::docker {
namespace {

using std::chrono::milliseconds;

constexpr const char* kOldest = "1.40";  // Docker 19.03, of 2019
constexpr const char* kNewest = "1.51";
constexpr milliseconds kTimeout{60'000};  // the daemon may be slow on a loaded machine
constexpr milliseconds kPullSilence{300'000};
constexpr milliseconds kPullStep{500};
constexpr size_t kMaxLine = 1 << 20;

Status Explain(const Status& status, const std::string& path) {
  const std::string daemon = "the Docker daemon at unix://" + path;
  switch (status.code()) {
    case Code::kNotFound:
    case Code::kUnavailable:
      return Unavailable(daemon + " does not answer (" + status.message() +
                         "); start it, or name another with DOCKER_HOST=unix://PATH");
    case Code::kPermissionDenied:
      return PermissionDenied(daemon + " may not be used by user " + std::to_string(::geteuid()) +
                              "; join its group (usermod -aG docker USER) and log in again");
    default:
      return status.With(daemon);
  }
}

Status ErrorOf(const net::HttpReply& reply) {
  const std::string text = DecodeError(reply.body);
  constexpr int kFailed = 500;  // the daemon uses it for all errors: a retry does not help
  const Code code = reply.status == kFailed ? Code::kInternal : net::CodeOfHttp(reply.status);
  return Status(code, text.empty() ? "status " + std::to_string(reply.status) : text);
}

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::string Filters(const json::object& filters) { return net::PercentEncode(ToText(filters)); }

}  // namespace

Result<std::string> DockerApi::SocketPath(const std::string& host) {
  std::string from = host;
  if (const char* variable = std::getenv("DOCKER_HOST"); from.empty() && variable != nullptr)
    from = variable;
  if (from.empty()) return std::string("/var/run/docker.sock");
  constexpr std::string_view kUnix = "unix://";
  if (from.starts_with(kUnix) && from.size() > kUnix.size() && from[kUnix.size()] == '/')
    return from.substr(kUnix.size());
  return InvalidArgument(
      "DOCKER_HOST: got \"" + from +
      "\", expected unix:///PATH: tasks find the job's directory on this machine");
}

Result<std::unique_ptr<DockerApi>> DockerApi::Connect(const std::string& host) {
  TRY_ASSIGN(const std::string path, SocketPath(host));
  const net::UnixHttp http(path);
  net::HttpRequest ask;
  ask.target = "/version";
  const auto reply = http.Call(ask, milliseconds(10'000));
  if (!reply.ok()) return Explain(reply.status(), path);
  const std::string daemon = "the Docker daemon at unix://" + path;
  if (reply->status != 200) return ErrorOf(*reply).With(daemon);
  auto versions = DecodeVersions(reply->body);
  if (!versions.ok()) return versions.status().With(daemon);
  if (CompareVersions(versions->api, kOldest) < 0) {
    return FailedPrecondition(daemon + " (Docker " + versions->engine + ") speaks API version " +
                              versions->api + ", at least " + kOldest +
                              " is needed; install Docker 19.03 or later");
  }
  const std::string version = CompareVersions(versions->api, kNewest) < 0 ? versions->api : kNewest;
  if (CompareVersions(version, versions->min_api) < 0) {
    return FailedPrecondition(daemon + " (Docker " + versions->engine +
                              ") speaks no API version before " + versions->min_api + "; " +
                              kNewest + " is the newest known here: use a newer shoal");
  }
  return std::unique_ptr<DockerApi>(new DockerApi(http, version));
}

net::HttpRequest DockerApi::Request(const std::string& method, const std::string& target) const {
  net::HttpRequest request;
  request.method = method;
  request.target = "/v" + version_ + target;
  return request;
}

net::HttpRequest DockerApi::Request(const std::string& method, const std::string& target,
                                    const json::object& body) const {
  net::HttpRequest request = Request(method, target);
  request.headers = {{"Content-Type", "application/json"}};
  request.body = ToText(body);
  return request;
}

Result<std::string> DockerApi::Call(const net::HttpRequest& request) const {
  auto reply = http_.Call(request, kTimeout);
  if (!reply.ok()) return Explain(reply.status(), http_.path());
  constexpr int kNotModified = 304;  // already in that state
  if (reply->status >= 300 && reply->status != kNotModified) return ErrorOf(*reply);
  return std::move(reply->body);
}

Result<Machine> DockerApi::GetMachine() const {
  TRY_ASSIGN(const std::string text, Call(Request("GET", "/info")));
  return DecodeMachine(text);
}

Result<std::vector<ContainerSummary>> DockerApi::List(const std::string& job) const {
  const std::string label = job.empty() ? kJobLabel : std::string(kJobLabel) + "=" + job;
  const std::string filters = Filters({{"label", json::array{label}}});
  TRY_ASSIGN(const std::string text,
             Call(Request("GET", "/containers/json?all=true&filters=" + filters)));
  return DecodeContainers(text);
}

Result<std::string> DockerApi::Create(const std::string& name, const json::object& body) const {
  TRY_ASSIGN(const std::string text,
             Call(Request("POST", "/containers/create?name=" + net::PercentEncode(name), body)));
  return DecodeId(text);
}

Status DockerApi::Start(const std::string& id, const std::string& program) const {
  const Status started = Call(Request("POST", "/containers/" + id + "/start")).status();
  const std::string& text = started.message();
  // Messages of the runtime, Docker 20.10 to 28.
  const bool exec =
      Has(text, "exec: ") || Has(text, "exec failed") || Has(text, "starting container process");
  if (exec && (Has(text, "no such file or directory") || Has(text, "executable file not found"))) {
    return NotFound("cannot start " + program +
                    ": there is no such program in the image; correct the task's command or image");
  }
  if (exec && Has(text, "permission denied"))
    return PermissionDenied("cannot start " + program + ": it is not an executable file");
  return started;
}

Status DockerApi::Kill(const std::string& id, const std::string& signal) const {
  const Status killed =
      Call(Request("POST", "/containers/" + id + "/kill?signal=" + signal)).status();
  // 409: the container does not run.
  if (killed.code() == Code::kNotFound || killed.code() == Code::kAlreadyExists)
    return Status::Ok();
  return killed;
}

Status DockerApi::Remove(const std::string& id) const {
  const Status removed =
      Call(Request("DELETE", "/containers/" + id + "?force=true&v=true")).status();
  if (removed.code() == Code::kNotFound) return Status::Ok();
  // 409: its removal is in progress.
  if (removed.code() == Code::kAlreadyExists) return Unavailable(removed.message());
  return removed;
}

Result<ContainerState> DockerApi::Inspect(const std::string& id_or_name) const {
  TRY_ASSIGN(const std::string text, Call(Request("GET", "/containers/" + id_or_name + "/json")));
  return DecodeContainer(text);
}

Result<std::string> DockerApi::Logs(const std::string& id, size_t limit) const {
  // A line has at least one byte.
  const std::string target =
      "/containers/" + id + "/logs?stdout=true&stderr=true&tail=" + std::to_string(limit);
  auto stream = http_.Open(Request("GET", target), kTimeout);
  if (!stream.ok()) return Explain(stream.status(), http_.path());
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  std::string text;
  FrameCutter cutter;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    TRY_ASSIGN(const std::string bytes, (*stream)->Next(std::max(left, milliseconds(0))));
    if ((*stream)->head().status != 200) {
      return ErrorOf({(*stream)->head().status, {}, bytes});
    }
    if (bytes.empty()) return text;
    std::vector<FrameCutter::Frame> frames;
    TRY(cutter.Feed(bytes, &frames));
    for (const FrameCutter::Frame& frame : frames) text += frame.bytes;
    if (text.size() > limit) text.erase(0, text.size() - limit);
  }
}

Result<std::unique_ptr<net::HttpStream>> DockerApi::Events(const std::string& since) const {
  const std::string filters =
      Filters({{"type", json::array{"container"}},
               {"label", json::array{kJobLabel}},
               {"event", json::array{"die", "oom", "destroy", "pause", "unpause"}}});
  auto stream =
      http_.Open(Request("GET", "/events?since=" + since + "&filters=" + filters), kTimeout);
  if (!stream.ok()) return Explain(stream.status(), http_.path());
  if ((*stream)->head().status != 200) {
    const auto text = (*stream)->Next(kTimeout);
    return ErrorOf({(*stream)->head().status, {}, text.value_or("")});
  }
  return stream;
}

Status DockerApi::CreateNetwork(const json::object& body) const {
  const Status made = Call(Request("POST", "/networks/create", body)).status();
  return made.code() == Code::kAlreadyExists ? Status::Ok() : made;
}

Status DockerApi::RemoveNetworks(const std::string& job) const {
  const json::object filters{{"label", json::array{std::string(kJobLabel) + "=" + job}}};
  TRY_ASSIGN(const std::string text,
             Call(Request("GET", "/networks?filters=" + net::PercentEncode(ToText(filters)))));
  TRY_ASSIGN(const std::vector<std::string> ids, DecodeNetworks(text));
  for (const std::string& id : ids) {
    const Status removed = Call(Request("DELETE", "/networks/" + id)).status();
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  }
  return Status::Ok();
}

Result<bool> DockerApi::HasImage(const std::string& image) const {
  const Status found =
      Call(Request("GET", "/images/" + net::PercentEncode(image) + "/json")).status();
  if (found.ok()) return true;
  if (found.code() == Code::kNotFound) return false;
  return found;
}

Result<EntryPoint> DockerApi::ImageEntryPoint(const std::string& image) const {
  TRY_ASSIGN(const std::string body,
             Call(Request("GET", "/images/" + net::PercentEncode(image) + "/json")));
  return DecodeEntryPoint(body);
}

Status DockerApi::Pull(const std::string& image, const std::string& login,
                       const std::function<Status(const std::string&)>& go_on) const {
  // Without a tag or digest the daemon would pull all tags.
  const size_t slash = image.rfind('/');
  const std::string last = slash == std::string::npos ? image : image.substr(slash + 1);
  const bool tagged = last.find_first_of(":@") != std::string::npos;
  const std::string target =
      "/images/create?fromImage=" + net::PercentEncode(tagged ? image : image + ":latest");
  net::HttpRequest request = Request("POST", target);
  if (!login.empty()) request.headers.emplace_back("X-Registry-Auth", login);
  auto stream = http_.Open(request, kTimeout);
  if (!stream.ok()) return Explain(stream.status(), http_.path());
  const int status = (*stream)->head().status;
  LineCutter cutter(kMaxLine);
  auto heard = std::chrono::steady_clock::now();
  auto told = heard - std::chrono::seconds(1);
  for (;;) {
    auto bytes = (*stream)->Next(kPullStep);
    const auto now = std::chrono::steady_clock::now();
    std::string words;
    if (bytes.status().code() == Code::kDeadlineExceeded && now - heard < kPullSilence) {
      TRY(go_on(words));
      continue;
    }
    if (!bytes.ok()) return bytes.status();
    if (status != 200) return ErrorOf({status, {}, *bytes});
    if (bytes->empty()) return Status::Ok();
    heard = now;
    std::vector<std::string> lines;
    TRY(cutter.Feed(*bytes, &lines));
    for (const std::string& line : lines) {
      TRY_ASSIGN(const PullProgress progress, DecodePullProgress(line));
      if (!progress.error.empty()) return NotFound(progress.error);
      words = progress.status;
    }
    if (now - told < std::chrono::seconds(1)) words.clear();
    if (!words.empty()) told = now;
    TRY(go_on(words));
  }
}

Status DockerApi::MakeEmptyImage(const std::string& repository, const std::string& tag) const {
  constexpr size_t kEmptyTar = 1024;  // two blocks of zeros: the end of an archive
  net::HttpRequest request =
      Request("POST", "/images/create?fromSrc=-&repo=" + net::PercentEncode(repository) +
                          "&tag=" + net::PercentEncode(tag));
  request.headers = {{"Content-Type", "application/x-tar"}};
  request.body = std::string(kEmptyTar, '\0');
  TRY_ASSIGN(const std::string text, Call(request));
  LineCutter cutter(kMaxLine);
  std::vector<std::string> lines;
  TRY(cutter.Feed(text + "\n", &lines));
  for (const std::string& line : lines) {
    TRY_ASSIGN(const PullProgress progress, DecodePullProgress(line));
    if (!progress.error.empty()) return Internal(progress.error);
  }
  return Status::Ok();
}

Result<std::string> DockerApi::CreateExec(const std::string& container,
                                          const json::object& body) const {
  TRY_ASSIGN(const std::string text,
             Call(Request("POST", "/containers/" + container + "/exec", body)));
  return DecodeId(text);
}

Result<net::Upgraded> DockerApi::StartExec(const std::string& exec) const {
  return http_.Upgrade(
      Request("POST", "/exec/" + exec + "/start", {{"Detach", false}, {"Tty", false}}), kTimeout);
}

Result<std::optional<int>> DockerApi::ExecEnd(const std::string& exec) const {
  TRY_ASSIGN(const std::string text, Call(Request("GET", "/exec/" + exec + "/json")));
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  TRY_ASSIGN(const bool running, GetBool(object, "Running"));
  if (running) return std::optional<int>();
  return std::optional<int>(static_cast<int>(GetIntOr(object, "ExitCode", -1)));
}

}  // namespace shoal::engine::docker
