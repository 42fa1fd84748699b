// Which cluster, as whom: kubeconfig files as kubectl reads them, and the service account of a pod.
// Used by kube_client.cc; fuzzed by tests/fuzz/kubernetes_fuzz.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "net/tls.h"

namespace shoal::engine::kubernetes {

// A program that says who we are (client.authentication.k8s.io/v1 and v1beta1).
struct ExecPlugin {
  std::vector<std::string> argv;  // empty: none
  std::vector<std::pair<std::string, std::string>> env;
  std::string version;
};

// How to reach a cluster, and as whom.
struct ClusterAccess {
  std::string source;   // the file or "the pod's service account", for messages
  std::string context;  // its name; empty in a pod
  std::string server;   // https://HOST:PORT
  std::string proxy;    // http://…; empty: none
  std::string name_space = "default";
  net::TlsOptions tls;
  std::string token;
  std::string token_file;         // read again now and then: it is renewed
  std::string user_and_password;  // basic; "user:password"
  ExecPlugin exec;
};

// The environment and files that it is found by; a test gives its own.
struct KubeConfigSources {
  std::string kubeconfig;  // as KUBECONFIG: paths, separated by ':'
  std::string home;
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string service_host;  // KUBERNETES_SERVICE_HOST and _PORT
  std::string service_port;
  std::string https_proxy;
  std::string no_proxy;
};
KubeConfigSources DefaultKubeConfigSources();

// `context` empty: the current one. NotFound says where it was looked for and what to do;
// InvalidArgument names file and field.
Result<ClusterAccess> FindCluster(const KubeConfigSources& place, const std::string& context);
// The text of one kubeconfig; relative paths in it are of the directory of `file`. Files it names
// are read.
Result<ClusterAccess> ReadKubeConfig(std::string_view text, const std::string& file,
                                     const std::string& context);

// What an exec plugin said.
struct ExecCredential {
  std::string token;
  std::string certificate;
  std::string key;
  std::string expires;  // RFC 3339; empty: never
};
Result<ExecCredential> DecodeExecCredential(std::string_view text);

// PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

// The header Authorization of each request; asks files and plugins again in time. Thread-safe.
class Credentials {
 public:
  // Asks an exec plugin for the first time.
  static Result<std::unique_ptr<Credentials>> Make(ClusterAccess access, const Clock* clock);
  // Empty if the certificate says it all.
  Result<std::string> Authorization();
  // What the plugin gave with its latest answer; empty: none, ClusterAccess::tls holds.
  KeyPair Certificate();
  // What was refused is asked for again.
  void Refused();

 private:
  Credentials(ClusterAccess access, const Clock* clock)
      : access_(std::move(access)), clock_(clock) {}
  Status AskPlugin();  // under mu_

  const ClusterAccess access_;
  const Clock* const clock_;
  std::mutex mu_;
  std::string token_;       // guarded by mu_
  KeyPair own_;             // guarded by mu_: of the plugin
  TimePoint good_until_{};  // guarded by mu_
};

}  // namespace shoal::engine::kubernetes
