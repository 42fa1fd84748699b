#include "data/objects/object_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>

#include "base/file.h"
#include "data/objects/copy_object.h"
#include "data/objects/test_object_server.h"

namespace shoal::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ObjectUri, IsReadAndWritten) {
  for (const char* same : {"a/b", "/a", "s3://bucket/a//b?*", "s3://b/", "http://h:1/x?y",
                           "https://h/", "webhdfs://n1:9870,n2:9870/a b", "swebhdfs://n:1/"})
    EXPECT_EQ(ParseObjectUri(same).value().text(), same);
  EXPECT_EQ(ParseObjectUri("file:///a").value().text(), "/a");
  EXPECT_EQ(ParseObjectUri("s3a://b/k").value().text(), "s3://b/k");
  EXPECT_EQ(ParseObjectUri("hdfs://n:9870/k").value().text(), "webhdfs://n:9870/k");
  EXPECT_EQ(ParseObjectUri("https://h").value().path, "/");
  EXPECT_FALSE(IsRemoteUri("a:b//c"));
  EXPECT_FALSE(IsRemoteUri("/x://y"));
  EXPECT_FALSE(IsRemoteUri("file:///x"));
  EXPECT_TRUE(IsRemoteUri("gs://b/k"));
}

TEST(ObjectUri, WrongOnesAreExplained) {
  const auto error = [](const std::string& text) {
    const auto uri = ParseObjectUri(text);
    EXPECT_EQ(uri.status().code(), Code::kInvalidArgument) << text;
    return uri.status().message();
  };
  EXPECT_THAT(error("gs://b/k"), HasSubstr("the scheme gs is not known"));
  EXPECT_THAT(error("s3:///k"), HasSubstr("expected s3://BUCKET/KEY"));
  EXPECT_THAT(error("s3://b@d/k"), HasSubstr("expected s3://BUCKET/KEY"));
  const std::string secret = error("https://me:hunter2@h/x");
  EXPECT_THAT(secret, HasSubstr("user or password"));
  EXPECT_THAT(secret, testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(error("http:///x"), HasSubstr("expected http://HOST/PATH"));
  EXPECT_THAT(error("http://h/\nx"), HasSubstr("expected http://HOST/PATH"));
  EXPECT_THAT(error("hdfs://nn:8020/x"), HasSubstr("RPC port"));
  EXPECT_THAT(error(std::string(10'000, 'x')), HasSubstr("more than 8192 bytes"));
  EXPECT_THAT(error(""), HasSubstr("empty"));
}

class LocalObjects : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    auto writer = stores_.Create(Path(name)).value();
    ASSERT_TRUE(writer->Append(bytes).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  std::string Path(const std::string& name) const { return (dir_.path() / name).string(); }
  std::vector<std::string> Names(const std::string& pattern) {
    std::vector<std::string> names = stores_.Expand(Path(pattern)).value();
    for (std::string& name : names) name.erase(0, dir_.path().string().size() + 1);
    return names;
  }
  Result<std::vector<PlannedCopy>> PlanOf(std::vector<std::string> sources,
                                          const std::string& target) {
    for (std::string& source : sources) source = Path(source);
    return PlanCopies(&stores_, sources, Path(target));
  }
  std::vector<std::string> Plan(const std::vector<std::string>& sources,
                                const std::string& target) {
    std::vector<std::string> places;
    const std::vector<PlannedCopy> copies = PlanOf(sources, target).value();
    for (const PlannedCopy& copy : copies)
      places.push_back(copy.to.substr(dir_.path().string().size() + 1));
    return places;
  }
  std::string PlanError(const std::vector<std::string>& sources, const std::string& target) {
    return PlanOf(sources, target).status().message();
  }
  const TempDir dir_ = TempDir::Create().value();
  TestContext context_;
  ObjectStores stores_{context_.Make()};
};

TEST_F(LocalObjects, AreWrittenWholeAndListed) {
  Write("b/part-2", "22");
  Write("b/part-1", "1");
  Write("b/_SUCCESS", "");
  Write("b/.hidden/part-3", "3");
  Write("b/c/part-4", "4444");
  EXPECT_THAT(Names("b/part-*"), ElementsAre("b/part-1", "b/part-2"));
  EXPECT_THAT(Names("b/"), ElementsAre("b/c/part-4", "b/part-1", "b/part-2"));
  EXPECT_THAT(Names("*/*/part-[3-5]"), ElementsAre("b/.hidden/part-3", "b/c/part-4"));
  EXPECT_THAT(stores_.Expand(Path("none-*")).status().message(), HasSubstr("matches no object"));
  EXPECT_EQ(stores_.List(Path("b/c/part-4")).value().front().bytes, 4u);
  {
    auto dropped = stores_.Create(Path("b/part-9")).value();
    ASSERT_TRUE(dropped->Append("x").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(Path("b/part-9")));
}

TEST_F(LocalObjects, AChangedFileIsAnError) {
  Write("a", "0123456789");
  const auto object = stores_.Open(Path("a")).value();
  char some[4] = {};
  EXPECT_EQ(object->ReadAt(8, some, 4).value(), 2u);
  std::filesystem::resize_file(Path("a"), 5);
  EXPECT_EQ(object->ReadAt(0, some, 4).status().code(), Code::kDataLoss);
}

TEST_F(LocalObjects, OnlyRegularFilesAreRead) {
  EXPECT_THAT(stores_.Open(dir_.path().string()).status().message(), HasSubstr("is a directory"));
  EXPECT_EQ(stores_.Open(Path("none")).status().code(), Code::kNotFound);
  EXPECT_THAT(stores_.Open("/dev/null").status().message(), HasSubstr("not a regular file"));
}

TEST_F(LocalObjects, AFileOfUnknownLengthIsNotReadAsEmpty) {
  EXPECT_THAT(stores_.Open("/proc/version").status().message(), HasSubstr("length that is not"));
  Write("empty", "");
  EXPECT_TRUE(stores_.Open(Path("empty")).ok());
}

TEST_F(LocalObjects, CopiesOfAFolderKeepTheirPaths) {
  Write("from/a/x", "1");
  Write("from/b/x", "22");
  EXPECT_THAT(Plan({"from/"}, "to"), ElementsAre("to/a/x", "to/b/x"));
  EXPECT_THAT(Plan({"from/a/"}, "to"), ElementsAre("to/x"));
  EXPECT_THAT(Plan({"from/a/x"}, "to"), ElementsAre("to"));
  EXPECT_THAT(Plan({"from/a/x"}, "from"), ElementsAre("from/x"));
}

TEST_F(LocalObjects, CopiesToOnePlaceAreRefused) {
  Write("from/a/x", "1");
  Write("from/b/x", "22");
  EXPECT_THAT(PlanError({"from/a/x", "from/b/x"}, "to/"), HasSubstr("would both be copied to"));
  EXPECT_THAT(PlanError({"from/*/x"}, "to"), HasSubstr("would both be copied to"));
  std::filesystem::create_hard_link(Path("from/a/x"), Path("same"));
  EXPECT_THAT(PlanError({"from/a/x"}, "same"), HasSubstr("copied to itself"));
}

TEST_F(LocalObjects, ACopyKeepsWhatItReplaces) {
  Write("from", "bytes");
  std::filesystem::permissions(Path("from"), std::filesystem::perms(0600));
  ASSERT_TRUE(CopyObject(&stores_, Path("from"), Path("private")).ok());
  EXPECT_EQ(std::filesystem::status(Path("private")).permissions(), std::filesystem::perms(0600));
  Write("old", "longer than before");
  std::filesystem::permissions(Path("old"), std::filesystem::perms(0640));
  std::filesystem::create_symlink(Path("old"), Path("link"));
  ASSERT_TRUE(CopyObject(&stores_, Path("from"), Path("link")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("old"), 100).value(), "bytes");
  EXPECT_EQ(std::filesystem::status(Path("old")).permissions(), std::filesystem::perms(0640));
  EXPECT_EQ(CopyObject(&stores_, Path("from"), dir_.path().string()).status().code(),
            Code::kInvalidArgument);
  // A device of our own: a mistake must not cost the machine its /dev/null.
  if (::mknod(Path("null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;  // not root
  ASSERT_TRUE(CopyObject(&stores_, Path("from"), Path("null")).ok());
  EXPECT_TRUE(std::filesystem::is_character_file(Path("null")));
}

TEST(ObjectStores, WhatCannotBeDoneIsSaid) {
  TestContext context;
  ObjectStores stores(context.Make());
  EXPECT_EQ(stores.Create("https://h/x").status().code(), Code::kUnimplemented);
  EXPECT_THAT(stores.Expand("https://h/x/").status().message(),
              HasSubstr("HTTP servers have no list"));
  EXPECT_THAT(stores.Expand("https://h/x[1]*").value(), ElementsAre("https://h/x[1]*"));
}

}  // namespace
}  // namespace shoal::data
