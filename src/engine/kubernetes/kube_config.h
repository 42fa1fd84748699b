// Cluster address and credentials: from kubeconfig files as kubectl reads them, or from a pod's
// service account.
// Used by kube_client.cc; fuzzed by tests/fuzz/kubernetes_fuzz.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/status.h"
#include "net/tls.h"

namespace shoal::engine::kubernetes {

// A program that prints credentials (client.authentication.k8s.io/v1 and v1beta1).
struct ExecPlugin {
  std::vector<std::string> argv;  // empty: none
  std::vector<std::pair<std::string, std::string>> env;
  std::string version;
};

// Address and credentials of a cluster.
struct ClusterAccess {
  std::string source;   // the file or "the pod's service account", for messages
  std::string context;  // its name; empty in a pod
  std::string server;   // https://HOST:PORT
  std::string proxy;    // http://…; empty: none
  std::string name_space = "default";
  net::TlsOptions tls;
  std::string token;
  std::string token_file;         // read again periodically, because it is renewed
  std::string user_and_password;  // basic; "user:password"
  ExecPlugin exec;
};

// Environment and files in which the configuration is searched; tests set their own.
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

// Finds the configuration. `context` empty: the current context. NotFound says where it was
// searched and what to do; InvalidArgument names file and field.
Result<ClusterAccess> FindCluster(const KubeConfigSources& place, const std::string& context);
// Parses the text of one kubeconfig and reads the files it names. Relative paths are relative to
// the directory of `file`.
Result<ClusterAccess> ReadKubeConfig(std::string_view text, const std::string& file,
                                     const std::string& context);

// Output of an exec plugin.
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

// Provides the header Authorization of each request; renews tokens from files and plugins before
// they expire. Thread-safe.
class Credentials {
 public:
  // Runs the exec plugin if there is one.
  static Result<std::unique_ptr<Credentials>> Make(ClusterAccess access, const Clock* clock);
  // Empty if the client certificate authenticates.
  Result<std::string> Authorization();
  // The certificate of the plugin's latest output; empty: use ClusterAccess::tls.
  KeyPair Certificate();
  // Discards credentials that were rejected.
  void InvalidateCredentials();

 private:
  Credentials(ClusterAccess access, const Clock* clock)
      : access_(std::move(access)), clock_(clock) {}
  Status AskPlugin() REQUIRES(mu_);

  const ClusterAccess access_;
  const Clock* const clock_;
  Mutex mu_;
  std::string token_ GUARDED_BY(mu_);
  KeyPair own_ GUARDED_BY(mu_);  // from the plugin
  TimePoint good_until_ GUARDED_BY(mu_){};
};

}  // namespace shoal::engine::kubernetes
