#include "engine/kubernetes/kube_config.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/base64.h"
#include "base/file.h"
#include "base/mutex.h"
#include "engine/kubernetes/decode.h"
#include "engine/process/child_process.h"
#include "job/text/yaml_tree.h"
#include "net/address.h"
#include "net/http/proxy_environment.h"
#include "net/http_client.h"

namespace shoal::engine::kubernetes {
namespace {

namespace fs = std::filesystem;
using job::Node;

constexpr size_t kMaxFile = 4 << 20;
constexpr std::chrono::seconds kFileAge{60};
constexpr std::chrono::seconds kRenewAhead{10};  // before a credential expires
constexpr std::chrono::seconds kRenewAtMost{1};  // minimum interval, in case a clock is wrong

// The entry of a list of {name, KIND: {…}}.
const Node* Named(const Node& root, std::string_view list, std::string_view name,
                  std::string_view kind) {
  const Node* entries = root.Find(list);
  if (entries == nullptr || entries->kind != Node::Kind::kList) return nullptr;
  for (const Node& entry : entries->items) {
    const Node* own = entry.Find("name");
    if (own != nullptr && own->text == name) return entry.Find(kind);
  }
  return nullptr;
}

std::string TextOf(const Node* node, std::string_view field) {
  const Node* found = node == nullptr ? nullptr : node->Find(field);
  return found != nullptr && found->kind == Node::Kind::kScalar ? found->text : "";
}

// FIELD-data in base64, else the file that FIELD names.
Status TakePem(const Node* node, const std::string& field, std::string* pem) {
  const std::string data = TextOf(node, field + "-data");
  if (!data.empty()) {
    auto decoded = DecodeBase64(data);
    if (!decoded.ok()) return decoded.status().With(field + "-data");
    *pem = std::move(*decoded);
    return Status::Ok();
  }
  const std::string path = TextOf(node, field);
  if (path.empty()) return Status::Ok();
  TRY_ASSIGN(*pem, ReadFile(path, kMaxFile));
  return Status::Ok();
}

void TakeExec(const Node* exec, ExecPlugin* plugin) {
  const std::string command = TextOf(exec, "command");
  if (command.empty()) return;
  plugin->argv = {command};
  plugin->version = TextOf(exec, "apiVersion");
  if (const Node* args = exec->Find("args"); args != nullptr) {
    for (const Node& word : args->items) plugin->argv.push_back(word.text);
  }
  if (const Node* env = exec->Find("env"); env != nullptr) {
    for (const Node& one : env->items)
      plugin->env.emplace_back(TextOf(&one, "name"), TextOf(&one, "value"));
  }
}

Status TakeUser(const Node* user, ClusterAccess* access) {
  TRY(TakePem(user, "client-certificate", &access->tls.certificate));
  TRY(TakePem(user, "client-key", &access->tls.key));
  access->token = TextOf(user, "token");
  access->token_file = TextOf(user, "tokenFile");
  const std::string name = TextOf(user, "username");
  if (!name.empty()) access->user_and_password = name + ":" + TextOf(user, "password");
  if (user == nullptr) return Status::Ok();
  if (const Node* exec = user->Find("exec"); exec != nullptr) TakeExec(exec, &access->exec);
  if (user->Find("auth-provider") != nullptr && access->exec.argv.empty() &&
      access->token.empty()) {
    return Unimplemented(
        "its auth-provider is no longer known to Kubernetes either (since 1.26); use an exec "
        "plugin");
  }
  return Status::Ok();
}

Status TakeCluster(const Node* cluster, ClusterAccess* access) {
  access->server = TextOf(cluster, "server");
  if (access->server.empty()) return InvalidArgument("its cluster has no server");
  TRY(net::ParseUrl(access->server).status());
  access->tls.server_name = TextOf(cluster, "tls-server-name");
  access->tls.verify = TextOf(cluster, "insecure-skip-tls-verify") != "true";
  access->proxy = TextOf(cluster, "proxy-url");
  return TakePem(cluster, "certificate-authority", &access->tls.authorities);
}

// Several files are merged; the first definition wins.
Status Merge(Node from, Node* into) {
  if (from.kind != Node::Kind::kMap) return Status::Ok();
  if (into->kind != Node::Kind::kMap) {
    *into = std::move(from);
    return Status::Ok();
  }
  for (size_t i = 0; i < from.keys.size(); ++i) {
    Node* there = into->Find(from.keys[i].text);
    if (there == nullptr) {
      into->keys.push_back(from.keys[i]);
      into->items.push_back(std::move(from.items[i]));
    } else if (there->kind == Node::Kind::kList) {
      for (Node& item : from.items[i].items) there->items.push_back(std::move(item));
    } else if (there->text.empty()) {
      *there = std::move(from.items[i]);
    }
  }
  return Status::Ok();
}

void ResolvePath(const fs::path& directory, std::string_view field, Node* node) {
  Node* const path = node == nullptr ? nullptr : node->Find(field);
  if (path == nullptr || path->kind != Node::Kind::kScalar) return;
  if (!path->text.empty() && path->text[0] != '/') path->text = directory / path->text;
}

// Resolves paths relative to their file before the files are merged.
void ResolvePaths(const fs::path& directory, Node* root) {
  const auto each = [root](std::string_view list, std::string_view kind, const auto& resolve) {
    Node* const entries = root->Find(list);
    if (entries == nullptr || entries->kind != Node::Kind::kList) return;
    for (Node& entry : entries->items) {
      if (Node* const node = entry.Find(kind); node != nullptr) resolve(node);
    }
  };
  each("clusters", "cluster",
       [&](Node* cluster) { ResolvePath(directory, "certificate-authority", cluster); });
  each("users", "user", [&](Node* user) {
    for (const char* field : {"client-certificate", "client-key", "tokenFile"})
      ResolvePath(directory, field, user);
    Node* const exec = user->Find("exec");
    // A name without '/' is looked up in PATH.
    if (TextOf(exec, "command").find('/') != std::string::npos)
      ResolvePath(directory, "command", exec);
  });
}

Result<Node> ParseFile(std::string_view text, const std::string& file) {
  job::Errors errors(file, {});
  Node root = job::ParseYaml(text, -1, &errors);
  TRY(errors.ToStatus());
  ResolvePaths(fs::path(file).parent_path(), &root);
  return root;
}

Result<ClusterAccess> Decode(const Node& root, const std::string& file, const std::string& wish) {
  ClusterAccess access;
  access.source = file;
  access.context = wish.empty() ? TextOf(&root, "current-context") : wish;
  if (access.context.empty()) {
    return FailedPrecondition(file +
                              ": it has no current-context; choose one with `kubectl config "
                              "use-context NAME` or kubernetes.context");
  }
  const Node* context = Named(root, "contexts", access.context, "context");
  if (context == nullptr)
    return NotFound(file + ": there is no context " + job::PrintableText(access.context) +
                    " in it");
  const std::string where = file + ": context " + access.context;
  const Node* cluster = Named(root, "clusters", TextOf(context, "cluster"), "cluster");
  TRY(TakeCluster(cluster, &access).With(where));
  TRY(TakeUser(Named(root, "users", TextOf(context, "user"), "user"), &access).With(where));
  const std::string name_space = TextOf(context, "namespace");
  if (!name_space.empty()) access.name_space = name_space;
  return access;
}

Result<ClusterAccess> InPod(const KubeConfigSources& place) {
  ClusterAccess access;
  access.source = "the pod's service account";
  const uint16_t port = static_cast<uint16_t>(std::atoi(place.service_port.c_str()));
  access.server = "https://" + net::FormatHostPort(place.service_host, port);
  access.token_file = place.service_account + "/token";
  TRY(ReadFile(access.token_file, kMaxFile).status());
  TRY_ASSIGN(access.tls.authorities, ReadFile(place.service_account + "/ca.crt", kMaxFile));
  const auto own = ReadFile(place.service_account + "/namespace", kMaxFile);
  if (own.ok() && !own->empty()) access.name_space = *own;
  return access;
}

void TakeProxy(const KubeConfigSources& place, ClusterAccess* access) {
  if (!access->proxy.empty() || place.https_proxy.empty()) return;
  const auto url = net::ParseUrl(access->server);
  if (url.ok() && url->tls && !net::IsExcludedFromProxy(url->host, url->port, place.no_proxy))
    access->proxy = place.https_proxy;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

KubeConfigSources DefaultKubeConfigSources() {
  KubeConfigSources place;
  place.kubeconfig = Variable("KUBECONFIG");
  place.home = Variable("HOME");
  place.service_host = Variable("KUBERNETES_SERVICE_HOST");
  place.service_port = Variable("KUBERNETES_SERVICE_PORT");
  for (const char* name : {"HTTPS_PROXY", "https_proxy"}) {
    if (place.https_proxy.empty()) place.https_proxy = Variable(name);
  }
  for (const char* name : {"NO_PROXY", "no_proxy"}) {
    if (place.no_proxy.empty()) place.no_proxy = Variable(name);
  }
  return place;
}

Result<ClusterAccess> ReadKubeConfig(std::string_view text, const std::string& file,
                                     const std::string& context) {
  TRY_ASSIGN(const Node root, ParseFile(text, file));
  return Decode(root, file, context);
}

Result<ClusterAccess> FindCluster(const KubeConfigSources& place, const std::string& context) {
  std::string paths = place.kubeconfig;
  if (paths.empty() && !place.home.empty()) paths = place.home + "/.kube/config";
  Node root;
  std::string files;
  for (size_t at = 0; at < paths.size();) {
    const size_t end = std::min(paths.find(':', at), paths.size());
    const std::string path = paths.substr(at, end - at);
    at = end + 1;
    if (path.empty()) continue;
    auto text = ReadFile(path, kMaxFile);
    if (text.status().code() == Code::kNotFound) continue;
    if (!text.ok()) return text.status();
    TRY_ASSIGN(Node one, ParseFile(*text, path));
    TRY(Merge(std::move(one), &root));
    files += (files.empty() ? "" : ":") + path;
  }
  Result<ClusterAccess> access = NotFound("");
  if (!files.empty()) {
    access = Decode(root, files, context);
  } else if (!place.service_host.empty()) {
    access = InPod(place);
  } else {
    return Unavailable("no cluster is known: there is no " +
                       (paths.empty() ? std::string("kubeconfig") : paths) +
                       ", and this is no pod; name a kubeconfig with KUBECONFIG");
  }
  if (access.ok()) TakeProxy(place, &*access);
  return access;
}

Result<ExecCredential> DecodeExecCredential(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  const json::value* status = object.if_contains("status");
  if (status == nullptr || !status->is_object())
    return InvalidArgument("it gave no ExecCredential with a status");
  ExecCredential credential;
  const json::object& fields = status->get_object();
  credential.token = GetStringOr(fields, "token", "");
  credential.certificate = GetStringOr(fields, "clientCertificateData", "");
  credential.key = GetStringOr(fields, "clientKeyData", "");
  credential.expires = GetStringOr(fields, "expirationTimestamp", "");
  const bool odd = std::any_of(credential.token.begin(), credential.token.end(),
                               [](char c) { return static_cast<unsigned char>(c) <= ' '; });
  if (odd || (credential.token.empty() && credential.certificate.empty()))
    return InvalidArgument("it gave neither a token nor a certificate");
  return credential;
}

Result<std::unique_ptr<Credentials>> Credentials::Make(ClusterAccess access, const Clock* clock) {
  std::unique_ptr<Credentials> credentials(new Credentials(std::move(access), clock));
  if (!credentials->access_.exec.argv.empty()) {
    const MutexLock lock(credentials->mu_);
    TRY(credentials->AskPlugin());
  }
  return credentials;
}

KeyPair Credentials::Certificate() {
  const MutexLock lock(mu_);
  return own_;
}

Status Credentials::AskPlugin() {
  std::vector<std::string> env = CurrentEnvironment();
  for (const auto& [name, value] : access_.exec.env) env.push_back(name + "=" + value);
  const json::object info{{"kind", "ExecCredential"},
                          {"apiVersion", access_.exec.version},
                          {"spec", {{"interactive", false}}}};
  env.push_back("KUBERNETES_EXEC_INFO=" + ToText(info));
  const std::string what = access_.source + ": the exec plugin " + access_.exec.argv[0];
  CommandLimits limits;
  limits.time = std::chrono::seconds(60);
  limits.bytes = 1 << 20;
  const auto ran = RunCommand(access_.exec.argv, env, "", limits);
  if (!ran.ok()) return ran.status().With(what);
  if (ran->exit_code != 0) {
    return Unauthenticated(what + " exited with code " + std::to_string(ran->exit_code) + ": " +
                           ran->err.substr(0, 1000));
  }
  const auto credential = DecodeExecCredential(ran->out);
  if (!credential.ok()) return credential.status().With(what);
  token_ = credential->token;
  own_ = {credential->certificate, credential->key};
  good_until_ = TimePoint::max();
  if (const auto expires = ReadTime(credential->expires); expires) {
    const Duration left = WallTime(std::chrono::seconds(*expires)) - clock_->Wall();
    good_until_ = clock_->Now() + std::max<Duration>(left - kRenewAhead, kRenewAtMost);
  }
  return Status::Ok();
}

Result<std::string> Credentials::Authorization() {
  if (!access_.token.empty()) return "Bearer " + access_.token;
  if (!access_.user_and_password.empty()) return "Basic " + EncodeBase64(access_.user_and_password);
  const MutexLock lock(mu_);
  if (!access_.exec.argv.empty()) {
    if (clock_->Now() >= good_until_) TRY(AskPlugin());
    return token_.empty() ? std::string() : "Bearer " + token_;
  }
  if (access_.token_file.empty()) return std::string();
  if (token_.empty() || clock_->Now() >= good_until_) {
    TRY_ASSIGN(token_, ReadFile(access_.token_file, kMaxFile));
    while (!token_.empty() && static_cast<unsigned char>(token_.back()) <= ' ') token_.pop_back();
    good_until_ = clock_->Now() + kFileAge;
  }
  return "Bearer " + token_;
}

void Credentials::InvalidateCredentials() {
  const MutexLock lock(mu_);
  good_until_ = TimePoint{};
}

}  // namespace shoal::engine::kubernetes
