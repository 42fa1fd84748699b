#include "controller/secrets/secret_vault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/base64.h"
#include "base/file.h"
#include "controller/secrets/job_secrets.h"
#include "controller/store/sqlite_store.h"
#include "job/execution/job_dir.h"
#include "rendezvous/launcher/task_secrets.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SecretVaultTest : public testing::Test {
 protected:
  SecretVaultTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    store_ = std::move(*OpenSqliteStore(root_ / "shoal.db"));
  }
  ~SecretVaultTest() override {
    store_.reset();
    std::filesystem::remove_all(root_);
  }

  SealingKeySource KeyFile() const { return {root_ / "secrets.key", ""}; }
  SecretVault Vault(const SealingKeySource& source) {
    return {&store_->records(), RealClock::Get(), source};
  }

  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("vault." + std::to_string(::getpid()));
  std::unique_ptr<Store> store_;
};

TEST_F(SecretVaultTest, KeepsValuesByTeam) {
  SecretVault vault = Vault(KeyFile());
  ASSERT_TRUE(vault.Set("red", "db", "hunter2", "ada").ok());
  ASSERT_TRUE(vault.Set("blue", "db", "other", "bob").ok());
  ASSERT_TRUE(vault.Set("red", "db", "hunter3", "eve").ok());
  EXPECT_EQ(vault.Read("red", "db").value(), "hunter3");
  EXPECT_EQ(vault.Read("blue", "db").value(), "other");
  const auto list = vault.List("red");
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ((*list)[0].name, "db");
  EXPECT_EQ((*list)[0].by, "eve");
  EXPECT_EQ((*list)[0].bytes, 7);
  ASSERT_TRUE(vault.Remove("red", "db").ok());
  EXPECT_EQ(vault.Remove("red", "db").code(), Code::kNotFound);
  EXPECT_EQ(vault.Read("red", "db").status().code(), Code::kNotFound);
  EXPECT_EQ(vault.Read("blue", "db").value(), "other");
}

// The next process reads the same key; no file but the key's says a value or the key.
TEST_F(SecretVaultTest, SealsWithAKeyOfItsOwnFile) {
  ASSERT_TRUE(Vault(KeyFile()).Set("", "db", "canary-hunter2", "").ok());
  EXPECT_EQ(Vault(KeyFile()).Read("", "db").value(), "canary-hunter2");
  EXPECT_EQ(std::filesystem::status(root_ / "secrets.key").permissions(),
            std::filesystem::perms(0600));
  const std::string key = ReadFile(root_ / "secrets.key", 100).value().substr(0, 64);
  for (const auto& entry : std::filesystem::directory_iterator(root_)) {
    const std::string bytes = ReadFile(entry.path(), 64 << 20).value();
    EXPECT_THAT(bytes, Not(HasSubstr("canary-hunter2"))) << entry.path();
    EXPECT_THAT(bytes, Not(HasSubstr(EncodeBase64("canary-hunter2")))) << entry.path();
    EXPECT_TRUE(entry.path().filename() == "secrets.key" || bytes.find(key) == std::string::npos);
  }
}

TEST_F(SecretVaultTest, AnotherOrMissingKeyIsTold) {
  ASSERT_TRUE(Vault(KeyFile()).Set("", "db", "hunter2", "").ok());
  std::filesystem::rename(root_ / "secrets.key", root_ / "away");
  EXPECT_THAT(Vault(KeyFile()).Read("", "db").status().message(),
              HasSubstr("is missing; restore it"));
  EXPECT_THAT(Vault(KeyFile()).Set("", "more", "x", "").message(), HasSubstr("is missing"));
  EXPECT_EQ(Vault(KeyFile()).Prepare().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(root_ / "secrets.key"));
  ASSERT_TRUE(WriteFileAtomically(root_ / "secrets.key", SealingKey::Random().text(), 0600).ok());
  EXPECT_THAT(Vault(KeyFile()).Read("", "db").status().message(),
              HasSubstr("secret db: it was sealed with another key"));
  ASSERT_TRUE(WriteFileAtomically(root_ / "secrets.key", "no key", 0600).ok());
  EXPECT_THAT(Vault(KeyFile()).Read("", "db").status().message(), HasSubstr("expected 32 bytes"));
}

TEST_F(SecretVaultTest, ACommandPrintsTheKey) {
  const std::string key = SealingKey::Random().text();
  const SealingKeySource source{root_ / "secrets.key", "echo " + key};
  ASSERT_TRUE(Vault(source).Prepare().ok());
  ASSERT_TRUE(Vault(source).Set("", "db", "hunter2", "").ok());
  EXPECT_EQ(Vault(source).Read("", "db").value(), "hunter2");
  EXPECT_FALSE(std::filesystem::exists(root_ / "secrets.key"));
  const Status failed = Vault({{}, "echo sealed: not allowed >&2; exit 3"}).Prepare();
  EXPECT_THAT(failed.message(), HasSubstr("exit code 3: sealed: not allowed"));
  EXPECT_THAT(Vault({{}, "echo oops"}).Prepare().message(), HasSubstr("expected 32 bytes"));
}

TEST_F(SecretVaultTest, RefusesBadNamesAndValues) {
  SecretVault vault = Vault(KeyFile());
  for (const std::string& name : {std::string(), std::string("a/b"), std::string("-a"),
                                  std::string("a b"), std::string(64, 'a'), std::string("\xff")})
    EXPECT_EQ(vault.Set("", name, "x", "").code(), Code::kInvalidArgument) << name;
  EXPECT_EQ(vault.Set("", "a", "", "").code(), Code::kInvalidArgument);
  EXPECT_EQ(vault.Set("", "a", std::string(kMaxSecretBytes + 1, 'x'), "").code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(vault.Set("", "a", std::string(kMaxSecretBytes, '\0'), "").ok());
  EXPECT_TRUE(vault.Set("", "A.b_c-9", "x", "").ok());
}

TEST_F(SecretVaultTest, AJobGetsItsOwnOnly) {
  SecretVault vault = Vault(KeyFile());
  ASSERT_TRUE(vault.Set("red", "db", "hunter2", "").ok());
  ASSERT_TRUE(vault.Set("red", "unused", "else", "").ok());
  job::Job job;
  const auto dir = root_ / "job";
  ASSERT_TRUE(WriteSecrets(nullptr, "red", job, dir).ok());
  EXPECT_FALSE(std::filesystem::exists(dir));
  job.env["URL"] = "db:{{shoal.secret.db}}";
  EXPECT_EQ(CheckSecrets(nullptr, "red", job).code(), Code::kFailedPrecondition);
  ASSERT_TRUE(CheckSecrets(&vault, "red", job).ok());
  EXPECT_THAT(CheckSecrets(&vault, "blue", job).message(),
              HasSubstr("env.URL: there is no secret db of team blue; make it with"));
  ASSERT_TRUE(WriteSecrets(&vault, "red", job, dir).ok());
  const auto file = job::JobDir(dir).secrets();
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  const auto values = rendezvous::ParseSecrets(ReadFile(file, 1000).value());
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(*values, ElementsAre(testing::Pair("db", "hunter2")));
}

}  // namespace
}  // namespace shoal::controller
