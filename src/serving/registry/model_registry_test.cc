#include "serving/registry/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/id.h"
#include "data/objects/test_object_server.h"

namespace shoal::serving {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The registry in a directory, and in an S3 store that the test keeps.
class Registry : public testing::TestWithParam<bool> {
 protected:
  Registry() {
    environment_.env = {{"AWS_ACCESS_KEY_ID", "a"},
                        {"AWS_SECRET_ACCESS_KEY", "b"},
                        {"AWS_ENDPOINT_URL_S3", "http://" + server_.host()}};
    server_.Use([this](const net::HttpServerRequest& request) { return Answer(request); });
    stores_ = std::make_unique<data::ObjectStores>(environment_.Make());
    registry_ = Open();
  }

  std::unique_ptr<ModelRegistry> Open() {
    auto opened = ModelRegistry::Open(stores_.get(), root());
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return std::move(*opened);
  }
  std::string root() const {
    return GetParam() ? "s3://bucket/models" : (directory_.path() / "registry").string();
  }
  // A model of two files.
  std::string Model(const std::string& weights) {
    const auto path = directory_.path() / ("model-" + RandomHex(4));
    EXPECT_TRUE(MakeDirectories(path).ok());
    std::ofstream(path / "weights.bin") << weights;
    std::ofstream(path / "model.json")
        << R"({"format": "shoal-linear-model", "parameters": {"l2": )" << weights.size() << "}}";
    return path.string();
  }
  uint64_t Add(const std::string& name, const std::string& weights) {
    const auto added = registry_->Add(name, Model(weights), {.by = "ann", .job = "job-1"});
    EXPECT_TRUE(added.ok()) << added.status().message();
    return added.ok() ? added->number : 0;
  }
  std::string Weights(const std::string& name, uint64_t number) {
    const auto version = registry_->Find({name, std::to_string(number)});
    if (!version.ok()) return version.status().message();
    const auto fetched = registry_->Fetch(name, *version, directory_.path() / "scratch");
    if (!fetched.ok()) return fetched.status().message();
    return ReadFile(*fetched / "weights.bin", 1 << 20).value();
  }

  net::HttpServerReply Answer(const net::HttpServerRequest& request) {
    net::HttpServerReply reply;
    if (const auto prefix = request.Query("prefix"); prefix) {
      reply.body = "<ListBucketResult><IsTruncated>false</IsTruncated>";
      for (const auto& [key, bytes] : objects_) {
        if (key.starts_with(*prefix))
          reply.body += "<Contents><Key>" + key + "</Key><Size>" + std::to_string(bytes.size()) +
                        "</Size><ETag>\"1\"</ETag></Contents>";
      }
      reply.body += "</ListBucketResult>";
      return reply;
    }
    const std::string key = request.target.substr(std::string("/bucket/").size());
    if (request.method == "PUT") {
      if (request.Header("if-none-match") == "*" && objects_.contains(key) && conditions_) {
        reply.status = 412;
        return reply;
      }
      objects_[key] = request.body;
      reply.headers = {{"ETag", "\"1\""}};
      return reply;
    }
    if (request.method == "DELETE") {
      objects_.erase(key);
      reply.status = 204;
      return reply;
    }
    const auto found = objects_.find(key);
    if (found == objects_.end()) {
      reply.status = 404;
      reply.body = "<Error><Code>NoSuchKey</Code></Error>";
      return reply;
    }
    reply.headers = {{"ETag", "\"1\""}};
    unsigned long long first = 0;
    unsigned long long last = 0;
    const std::string range(request.Header("range"));
    if (std::sscanf(range.c_str(), "bytes=%llu-%llu", &first, &last) != 2) {
      reply.body = found->second;
      return reply;
    }
    reply.status = 206;
    reply.body = found->second.substr(first, last - first + 1);
    reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                    std::to_string(first + reply.body.size() - 1) +
                                                    "/" + std::to_string(found->second.size()));
    return reply;
  }

  const TempDir directory_ = TempDir::Create().value();
  std::map<std::string, std::string> objects_;  // of the store; its server has one thread
  bool conditions_ = true;
  data::TestObjectServer server_;
  data::TestContext environment_;
  std::unique_ptr<data::ObjectStores> stores_;
  std::unique_ptr<ModelRegistry> registry_;
};

INSTANTIATE_TEST_SUITE_P(Places, Registry, testing::Bool(),
                         [](const auto& place) { return place.param ? "S3" : "Directory"; });

TEST_P(Registry, ASaveMakesTheNextVersionAndChangesNone) {
  EXPECT_THAT(*registry_->Names(), IsEmpty());
  EXPECT_EQ(Add("ages", "first"), 1u);
  EXPECT_EQ(Add("ages", "second!"), 2u);
  EXPECT_EQ(Add("zips", "other"), 1u);
  EXPECT_EQ(Weights("ages", 1), "first");
  EXPECT_EQ(Weights("ages", 2), "second!");
  EXPECT_THAT(*registry_->Names(), ElementsAre("ages", "zips"));
  const auto newest = Open()->Find({"ages", ""});  // another process
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->number, 2u);
  EXPECT_EQ(newest->by, "ann");
  EXPECT_EQ(newest->job, "job-1");
  EXPECT_EQ(ToText(*FindObject(newest->metadata, "parameters")), R"({"l2":7})");
  const auto similar = registry_->Read("agess").status();
  EXPECT_EQ(similar.code(), Code::kNotFound);
  EXPECT_THAT(similar.message(), HasSubstr("did you mean 'ages'"));
}

TEST_P(Registry, TagsProtectAndRollBack) {
  for (const char* const weights : {"1", "22", "333"}) Add("m", weights);
  EXPECT_EQ(registry_->Rollback("m", "").status().code(), Code::kFailedPrecondition);
  for (const uint64_t number : {1, 2, 3})
    ASSERT_TRUE(registry_->Tag("m", "promoted", number, "").ok());
  EXPECT_EQ(registry_->Find({"m", ""})->number, 3u);
  EXPECT_EQ(*registry_->Rollback("m", ""), 2u);
  EXPECT_EQ(*registry_->Rollback("m", ""), 1u);
  EXPECT_EQ(registry_->Find({"m", "promoted"})->number, 1u);
  const Status kept = registry_->Delete("m", 1, "");
  EXPECT_EQ(kept.code(), Code::kFailedPrecondition);
  EXPECT_THAT(kept.message(), HasSubstr("protected by the tag promoted"));
  ASSERT_TRUE(registry_->Tag("m", "promoted", 0, "").ok());
  ASSERT_TRUE(registry_->Delete("m", 1, "").ok());
  EXPECT_THAT(registry_->Find({"m", "1"}).status().message(), HasSubstr("was deleted"));
  EXPECT_EQ(registry_->Tag("m", "old", 1, "").code(), Code::kNotFound);
  EXPECT_EQ(Add("m", "4444"), 4u);  // a number is not used again
  EXPECT_EQ(Weights("m", 3), "333");
}

TEST_P(Registry, AFileThatChangedIsFound) {
  Add("m", "weights");
  const auto version = *registry_->Find({"m", "1"});
  if (GetParam()) {
    for (auto& [key, bytes] : objects_) {
      if (key.ends_with("weights.bin")) bytes = "Weights";
    }
  } else {
    std::ofstream(directory_.path() / "registry/m/files" / version.folder / "weights.bin")
        << "Weights";
  }
  EXPECT_THAT(Weights("m", 1), HasSubstr("is not the file that was registered"));
}

TEST_P(Registry, AnExportIsTheModel) {
  Add("m", "weights");
  const std::string to = (directory_.path() / "exported").string();
  ASSERT_TRUE(registry_->Export("m", *registry_->Find({"m", "1"}), to).ok());
  EXPECT_EQ(ReadFile(to + "/weights.bin", 100).value(), "weights");
  EXPECT_EQ(registry_->Export("m", *registry_->Find({"m", "1"}), to).code(), Code::kAlreadyExists);
}

TEST_P(Registry, WhatIsNoEntryIsRefused) {
  Add("m", "weights");
  const std::string entry = "m/log/00000002.json";
  for (const char* const bad :
       {"", "{", "{}", R"({"op": "burn"})", R"({"op": "tag", "tag": "a", "version": 9})",
        R"({"op": "add", "version": 2, "folder": "../x", "files": []})",
        R"({"op": "add", "version": 2, "folder": "f", "files": [{"name": "../../x", "bytes": 1,
            "sha256": "0000000000000000000000000000000000000000000000000000000000000000"}]})"}) {
    if (GetParam()) {
      objects_["models/" + entry] = bad;
    } else {
      std::ofstream(directory_.path() / "registry" / entry) << bad;
    }
    EXPECT_EQ(registry_->Read("m").status().code(), Code::kDataLoss) << bad;
  }
}

TEST(ModelRegistry, ProcessesThatAddAtOnceGetNumbersOfTheirOwn) {
  const TempDir directory = TempDir::Create().value();
  const std::string model = (directory.path() / "m").string();
  ASSERT_TRUE(MakeDirectories(model).ok());
  std::ofstream(model + "/weights.bin") << "w";
  constexpr int kThreads = 6;
  constexpr int kEach = 5;
  std::vector<std::vector<uint64_t>> numbers(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      data::ObjectStores stores;
      const auto registry =
          ModelRegistry::Open(&stores, (directory.path() / "registry").string()).value();
      for (int k = 0; k < kEach; ++k) {
        const auto added = registry->Add("m", model, {});
        if (added.ok()) numbers[static_cast<size_t>(i)].push_back(added->number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& some : numbers) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads * kEach));
  EXPECT_EQ(*all.begin(), 1u);
  EXPECT_EQ(*all.rbegin(), static_cast<uint64_t>(kThreads * kEach));
}

TEST(ModelNames, AreCheckedAndMade) {
  EXPECT_TRUE(CheckModelName("ages-2.x_y").ok());
  for (const char* const bad : {"", ".x", "a b", "a/b", "a@b", "ü"})
    EXPECT_FALSE(CheckModelName(bad).ok()) << bad;
  EXPECT_FALSE(CheckTag("17").ok());
  EXPECT_EQ(NameForPath("/data/my model/"), "my-model");
  EXPECT_EQ(NameForPath("s3://b/.x"), "x");
  EXPECT_EQ(NameForPath("/"), "model");
  EXPECT_EQ(ParseModelReference("a@3")->version, "3");
  EXPECT_EQ(ParseModelReference("a")->version, "");
  EXPECT_FALSE(ParseModelReference("a@").ok());
}

}  // namespace
}  // namespace shoal::serving
