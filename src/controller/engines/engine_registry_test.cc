#include "controller/engines/engine_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EngineInstancesTest : public testing::Test {
 protected:
  Result<std::vector<EngineInstance>> Read(const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(place_.path()) / "engines.yaml";
    TRY(WriteFileAtomically(file, text));
    return ReadEngineInstances(file);
  }
  std::string ErrorOf(const std::string& text) { return Read(text).status().message(); }

  TempDir place_ = std::move(*TempDir::Create());
};

TEST_F(EngineInstancesTest, TwoClustersOfAKindAreDistinct) {
  auto read = Read(R"(
engines:
  local:
  east: {kind: kubernetes, kubeconfig: /etc/east.conf, context: prod, namespace: ml}
  west: {kind: kubernetes, kubeconfig: /etc/west.conf}
  hpc: {kind: slurm, env: {SLURM_CONF: /etc/hpc.conf}}
)");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->at(3).environment.at("SLURM_CONF"), "/etc/hpc.conf");
  EngineRegistry registry(std::move(*read), {});
  EXPECT_THAT(registry.names(), ElementsAre("local", "east", "west", "hpc"));
  EXPECT_EQ(registry.KindOf("east"), "kubernetes");
  EXPECT_EQ(registry.KindOf("north"), "");
  job::Job job;
  job.kubernetes.name_space = "mine";
  registry.SetDefaults("east", &job);
  EXPECT_EQ(job.kubernetes.context, "prod");
  EXPECT_EQ(job.kubernetes.name_space, "mine");
  const auto east = registry.Find("east");
  const auto west = registry.Find("west");
  ASSERT_TRUE(east.ok() && west.ok());
  EXPECT_NE(*east, *west);
  EXPECT_EQ(*registry.Find("east"), *east);
  EXPECT_THAT(registry.Find("north").status().message(),
              HasSubstr("got the engine north, expected one of: local, east, west, hpc"));
}

TEST_F(EngineInstancesTest, WrongFilesAreExplainedWithTheirPlaces) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("expected at least one instance"));
  EXPECT_THAT(ErrorOf("engines: {a: {kind: kubernets}}"), HasSubstr("did you mean 'kubernetes'?"));
  EXPECT_THAT(ErrorOf("engines: {a: {kind: slurm, context: x}}"),
              HasSubstr("engines.yaml:1:28: engines.a.context: the engine slurm has no such"));
  EXPECT_THAT(ErrorOf("engines: {A b: {kind: local}}"), HasSubstr("lower-case letters"));
  EXPECT_THAT(ErrorOf("engine: {a: {kind: local}}"), HasSubstr("unknown field"));
  EXPECT_THAT(ErrorOf("engines: {a: {kind: kubernetes, context: [1]}}"),
              HasSubstr("got a list, expected a text"));
  EXPECT_THAT(ErrorOf("engines: {a: {kind: slurm, env: {A=B: x}}}"),
              HasSubstr("a variable's name"));
  EXPECT_FALSE(Read("engines: {a: {kind: local}, a: {kind: docker}}").ok());
  EXPECT_THAT(ErrorOf("engines: {a: {kind: local-apart}}"), HasSubstr("expected one of"));
}

TEST(EngineRegistryTest, WithoutAFileTheNamesAreTheKinds) {
  EngineRegistry registry;
  EXPECT_THAT(registry.names(), ElementsAre("local", "docker", "kubernetes", "slurm", "marathon"));
  EXPECT_TRUE(registry.Find("local-apart").ok());
  EXPECT_EQ(registry.KindOf("docker"), "docker");
}

}  // namespace
}  // namespace shoal::controller
