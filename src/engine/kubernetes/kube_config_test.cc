// Where a cluster is found: several kubeconfig files, and the proxy of the environment.
#include "engine/kubernetes/kube_config.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "net/http/proxy_environment.h"

namespace shoal::engine::kubernetes {
namespace {

constexpr const char* kTwo = R"(
contexts: [{name: two, context: {cluster: two, user: two}}]
clusters: [{name: two, cluster: {server: "https://10.1.2.3:6443", certificate-authority: pki/ca.crt}}]
users: [{name: two, user: {tokenFile: pki/token, exec: {command: ./get-token}}}]
)";

TEST(KubeConfigFiles, APathIsRelativeToTheFileItStandsIn) {
  auto dir = TempDir::Create("kube");
  ASSERT_TRUE(dir.ok());
  for (const char* name : {"first", "second/pki"})
    ASSERT_TRUE(MakeDirectories(dir->path() / name).ok());
  const auto write = [&](const char* name, const char* text) {
    EXPECT_TRUE(WriteFileAtomically(dir->path() / name, text).ok());
    return (dir->path() / name).string();
  };
  write("second/pki/ca.crt", "the authority");
  KubeConfigSources place;
  place.kubeconfig =
      write("first/config", "current-context: two") + ":" + write("second/config", kTwo);
  const auto access = FindCluster(place, "");
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->tls.authorities, "the authority");
  EXPECT_EQ(access->token_file, (dir->path() / "second/pki/token").string());
  ASSERT_EQ(access->exec.argv.size(), 1u);
  EXPECT_EQ(access->exec.argv[0], (dir->path() / "second/./get-token").string());
}

std::string ProxyOf(const std::string& server, const std::string& no_proxy) {
  auto dir = TempDir::Create("kube");
  const std::string text =
      "{current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, "
      "cluster: {server: \"" +
      server + "\"}}]}";
  EXPECT_TRUE(WriteFileAtomically(dir->path() / "config", text).ok());
  KubeConfigSources place;
  place.kubeconfig = (dir->path() / "config").string();
  place.https_proxy = "http://proxy:3128";
  place.no_proxy = no_proxy;
  const auto access = FindCluster(place, "");
  EXPECT_TRUE(access.ok()) << access.status().message();
  return access.ok() ? access->proxy : "";
}

TEST(KubeProxy, IsThatOfTheEnvironmentUnlessTheServerIsExcluded) {
  EXPECT_EQ(ProxyOf("https://10.1.2.3:6443", ""), "http://proxy:3128");
  EXPECT_EQ(ProxyOf("https://10.1.2.3:6443", "10.0.0.0/8"), "");
  EXPECT_EQ(ProxyOf("https://127.0.0.1:6443", ""), "");
  EXPECT_EQ(ProxyOf("https://localhost:6443", ""), "");
  EXPECT_EQ(ProxyOf("https://[::1]:6443", ""), "");
}

TEST(NoProxy, Names) {
  EXPECT_TRUE(net::IsExcludedFromProxy("a.b.example", 443, "x, .b.example"));
  EXPECT_FALSE(net::IsExcludedFromProxy("b.example", 443, ".b.example"));
  EXPECT_TRUE(net::IsExcludedFromProxy("a.b.example", 443, "*.b.example"));
  EXPECT_TRUE(net::IsExcludedFromProxy("b.example", 443, "b.example"));
  EXPECT_TRUE(net::IsExcludedFromProxy("a.b.example", 443, "b.example"));
  EXPECT_TRUE(net::IsExcludedFromProxy("B.Example", 443, "b.eXample"));
  EXPECT_FALSE(net::IsExcludedFromProxy("ab.example", 443, "b.example"));
  EXPECT_TRUE(net::IsExcludedFromProxy("any", 443, "x,*"));
  EXPECT_FALSE(net::IsExcludedFromProxy("any", 443, ",, ,:,."));
}

TEST(NoProxy, PortsCountWhereTheyAreNamed) {
  EXPECT_TRUE(net::IsExcludedFromProxy("b.example", 6443, "b.example:6443"));
  EXPECT_FALSE(net::IsExcludedFromProxy("b.example", 443, "b.example:6443"));
  EXPECT_FALSE(net::IsExcludedFromProxy("b.example", 443, "b.example:x"));
  EXPECT_TRUE(net::IsExcludedFromProxy("10.0.0.1", 6443, "10.0.0.1:6443"));
  EXPECT_TRUE(net::IsExcludedFromProxy("fd00::1", 6443, "[fd00::1]:6443"));
  EXPECT_FALSE(net::IsExcludedFromProxy("fd00::1", 443, "[fd00::1]:6443"));
}

TEST(NoProxy, AddressesAndNetworks) {
  EXPECT_TRUE(net::IsExcludedFromProxy("10.200.0.1", 443, "192.168.0.0/16,10.0.0.0/8"));
  EXPECT_FALSE(net::IsExcludedFromProxy("11.0.0.1", 443, "10.0.0.0/8"));
  EXPECT_FALSE(net::IsExcludedFromProxy("10.0.0.9", 443, "10.0.0.8/32"));
  EXPECT_TRUE(net::IsExcludedFromProxy("11.0.0.1", 443, "0.0.0.0/0"));
  EXPECT_FALSE(net::IsExcludedFromProxy("fd00::1", 443, "0.0.0.0/0"));
  EXPECT_TRUE(net::IsExcludedFromProxy("fd00::1", 443, "fd00::/8"));
  EXPECT_TRUE(net::IsExcludedFromProxy("fd00::1", 443, "fd00:0::1"));
  EXPECT_FALSE(net::IsExcludedFromProxy("a.example", 443, "10.0.0.0/8"));
  EXPECT_FALSE(net::IsExcludedFromProxy("10.0.0.1", 443, "10.0.0.0/33,10.0.0.0/-1,10.0.0.0/"));
  EXPECT_TRUE(net::IsExcludedFromProxy("127.9.9.9", 443, ""));
  EXPECT_FALSE(net::IsExcludedFromProxy("128.0.0.1", 443, ""));
}

}  // namespace
}  // namespace shoal::engine::kubernetes
