#include "serving/registry/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"
#include "base/id.h"
#include "serving/registry/history_json.h"
#include "serving/registry/model_registry.h"

namespace shoal::serving {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct stat InfoOf(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info;
}

class Source : public testing::Test {
 protected:
  Source() { fs::create_directories(model_ / "sub"); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(model_ / name) << bytes;
  }
  // model.json as Shoal writes it, with one large file that it lists and one that it does not.
  void WriteModel() {
    Write("weights.bin", large_);
    Write("other.bin", large_);
    Write("model.json", R"({"format": "shoal-linear-model", "files": {"weights.bin": {}}})");
  }
  std::unique_ptr<ModelRegistry> Open() {
    return ModelRegistry::Open(&stores_, (directory_.path() / "registry").string()).value();
  }
  fs::path FilesOf(const ModelVersion& version) {
    return directory_.path() / "registry/m/files" / version.folder;
  }

  const TempDir directory_ = TempDir::Create().value();
  const fs::path model_ = directory_.path() / "model";
  const std::string large_ = std::string(kLinkFromBytes, 'w');
  const SourceAccess strict_{.follow_links = false, .trusts_path = false};
  data::ObjectStores stores_;
};

// On a file system that shares blocks the files are others with the same blocks.
TEST_F(Source, OnlyFilesThatShoalReplacesAreLinked) {
  WriteModel();
  const auto added = Open()->Add("m", model_.string(), {});
  ASSERT_TRUE(added.ok()) << added.status().message();
  const fs::path files = FilesOf(*added);
  const bool linked = InfoOf(files / "weights.bin").st_ino == InfoOf(model_ / "weights.bin").st_ino;
  EXPECT_NE(InfoOf(files / "other.bin").st_ino, InfoOf(model_ / "other.bin").st_ino);
  EXPECT_NE(InfoOf(files / "model.json").st_ino, InfoOf(model_ / "model.json").st_ino);
  EXPECT_EQ(InfoOf(model_ / "other.bin").st_mode & 0200, 0200u);
  EXPECT_EQ(added->bytes(), 2 * large_.size() + InfoOf(model_ / "model.json").st_size);
  if (!linked) return;
  EXPECT_EQ(InfoOf(model_ / "weights.bin").st_mode & 0222, 0u);
  // A later save replaces the file.
  const std::string later(kLinkFromBytes, 'n');
  ASSERT_TRUE(WriteFileAtomically(model_ / "weights.bin", later).ok());
  EXPECT_EQ(ReadFile(files / "weights.bin", 2 * kLinkFromBytes).value(), large_);
  EXPECT_TRUE(Open()->Fetch("m", *added, directory_.path() / "scratch").ok());
}

TEST_F(Source, AModelOfAnotherProgramIsCopied) {
  WriteModel();
  Write("model.json", R"({"format": "other", "files": {"weights.bin": {}}})");
  const auto added = Open()->Add("m", model_.string(), {});
  ASSERT_TRUE(added.ok());
  std::ofstream(model_ / "weights.bin") << "written in place";
  EXPECT_TRUE(Open()->Fetch("m", *added, directory_.path() / "scratch").ok());
}

TEST_F(Source, FilesInOrderWithoutMarks) {
  for (const char* const name : {"b", "a", "sub/c", ".hidden", "_SUCCESS"}) Write(name, name);
  const auto source = ModelSource::Open(model_, strict_);
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(*source->List(), ElementsAre("a", "b", "sub/c"));
  const auto file = source->Take("sub/c", directory_.path() / "taken/deep/c");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->sha256, Sha256Hex("sub/c"));
  EXPECT_EQ(ReadFile(directory_.path() / "taken/deep/c", 100).value(), "sub/c");
}

TEST_F(Source, LinksOfAnotherUserLeadNowhere) {
  const fs::path secret = directory_.path() / "secret";
  std::ofstream(secret) << "secret";
  Write("a", "a");
  fs::create_symlink(secret, model_ / "sub/link");
  const auto source = ModelSource::Open(model_, strict_);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->List().status().code(), Code::kPermissionDenied);
  EXPECT_EQ(source->Take("sub/link", directory_.path() / "x").status().code(),
            Code::kPermissionDenied);
  EXPECT_FALSE(source->Take("../secret", directory_.path() / "y").ok());
  EXPECT_TRUE(ModelSource::Open(model_, {})->List().ok());  // the user's own command follows it
  // The directory itself, and a directory on the way to it.
  fs::create_directory_symlink(model_, directory_.path() / "alias");
  EXPECT_THAT(ModelSource::Open(directory_.path() / "alias", strict_).status().message(),
              HasSubstr("is a link, or lies behind one"));
  EXPECT_EQ(ModelSource::Open(directory_.path() / "alias/sub", strict_).status().code(),
            Code::kPermissionDenied);
  EXPECT_TRUE(ModelSource::Open(directory_.path() / "alias/sub",
                                {.follow_links = false, .trusts_path = true})
                  .ok());
}

TEST_F(Source, WhatIsNoFileIsRefused) {
  ASSERT_EQ(::mkfifo((model_ / "pipe").c_str(), 0600), 0);
  const auto source = ModelSource::Open(model_, {});
  EXPECT_THAT(source->List().status().message(), HasSubstr("is no file"));
  EXPECT_FALSE(source->Take("pipe", directory_.path() / "x").ok());
  EXPECT_EQ(ModelSource::Open(directory_.path() / "none", {}).status().code(), Code::kNotFound);
}

TEST_F(Source, AJobAddsOneVersion) {
  Write("a", "a");
  const auto registry = Open();
  const Provenance from{.by = "ann", .job = "job-1"};
  ASSERT_TRUE(registry->AddOnce("m", model_.string(), from, strict_).ok());
  const auto again = registry->AddOnce("m", model_.string(), from, strict_);
  EXPECT_EQ(again.status().code(), Code::kAlreadyExists);
  EXPECT_THAT(again.status().message(), HasSubstr("is m@1 already"));
  ASSERT_TRUE(registry->Delete("m", 1, "ann").ok());
  EXPECT_FALSE(registry->AddOnce("m", model_.string(), from, strict_).ok());
  EXPECT_TRUE(fs::is_empty(directory_.path() / "registry/m/files"));
}

TEST_F(Source, NothingStaysOfAVersionThatCouldNotBeAdded) {
  Write("a", "a");
  Write("model.json", "{");
  EXPECT_EQ(Open()->Add("m", model_.string(), {}).status().code(), Code::kDataLoss);
  EXPECT_TRUE(fs::is_empty(directory_.path() / "registry/m/files"));
}

TEST_F(Source, AHistoryIsReadBackFromItsJson) {
  Write("model.json", R"({"format": "x", "held_out": {"auc": 0.75}, "parameters": {"l2": 1}})");
  const auto registry = Open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(registry->Add("m", model_.string(), {.by = "ann"}).ok());
  ASSERT_TRUE(registry->Tag("m", "promoted", 1, "").ok());
  ASSERT_TRUE(registry->Tag("m", "promoted", 3, "").ok());
  ASSERT_TRUE(registry->Delete("m", 2, "").ok());
  const ModelHistory history = registry->Read("m").value();
  const json::object whole = HistoryJson("m", history, Detail::kWhole);
  const auto read = HistoryFromJson(whole);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->tags(), history.tags());
  EXPECT_TRUE(read->versions()[1].deleted);
  EXPECT_EQ(ToText(VersionJson("m", read->versions()[2], *read)),
            ToText(VersionJson("m", history.versions()[2], history)));
  const json::object brief = HistoryJson("m", history, Detail::kBrief);
  EXPECT_EQ(brief.at("versions").as_array().size(), 2u);
  EXPECT_EQ(brief.at("previous"), 1);
  EXPECT_EQ(brief.at("versions").at(0).at("measures").at("auc"), 0.75);
  for (const char* const bad : {"{}", R"({"versions": [3]})", R"({"versions": [{"version": 2}]})"})
    EXPECT_EQ(HistoryFromJson(*ParseJsonObject(bad)).status().code(), Code::kDataLoss) << bad;
}

TEST_F(Source, VersionsAreCompared) {
  Write("model.json", R"({"parameters": {"l2": 1, "rate": 0.5, "auc": 0.75}})");
  const auto registry = Open();
  const ModelVersion first = registry->Add("m", model_.string(), {}).value();
  Write("model.json", R"({"parameters": {"l2": 2, "rate": 0.5, "auc": 0.875}, "note": "x"})");
  const ModelVersion second = registry->Add("m", model_.string(), {}).value();
  const Differences differences = Compare(first, second);
  EXPECT_EQ(differences.at("parameters.l2"), std::pair(std::string("1"), std::string("2")));
  EXPECT_EQ(differences.at("parameters.auc"), std::pair(std::string("0.75"), std::string("0.875")));
  EXPECT_EQ(differences.at("note"), std::pair(std::string(), std::string("x")));
  EXPECT_TRUE(differences.contains("files.model.json.sha256"));
  EXPECT_EQ(differences.size(), 4u);
}

}  // namespace
}  // namespace shoal::serving
