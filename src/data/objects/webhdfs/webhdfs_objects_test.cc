#include "data/objects/webhdfs/webhdfs_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/objects/object_stores.h"
#include "data/objects/test_object_server.h"

namespace shoal::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

net::HttpServerReply Reply(int status, const std::string& body) {
  net::HttpServerReply reply;
  reply.status = status;
  reply.body = body;
  return reply;
}

net::HttpServerReply Exception(int status, const std::string& name) {
  return Reply(status, R"({"RemoteException":{"exception":")" + name +
                           R"(","message":"It is so.\n\tat java"}})");
}

// A name node and a data node in one, with files by path.
class FakeHdfs {
 public:
  net::HttpServerReply Answer(const net::HttpServerRequest& request) {
    EXPECT_EQ(request.Query("user.name"), "me");
    std::string path;
    for (size_t i = 2; i < request.path.size(); ++i) {
      if (!request.path[i].empty()) path += "/" + request.path[i];
    }
    const std::string op(request.Query("op").value_or(""));
    if (standby) return Exception(403, "StandbyException");
    if (op == "GETFILESTATUS") return files.contains(path) ? Status(path) : Missing();
    if (op == "LISTSTATUS_BATCH")
      return List(path, std::string(request.Query("startAfter").value_or("")));
    if (op == "RENAME") {
      const std::string to(*request.Query("destination"));
      files[to] = std::move(files[path]);
      files.erase(path);
      return Reply(200, "{}");
    }
    if (op == "DELETE") {
      files.erase(path);
      return Reply(200, R"({"boolean":true})");
    }
    if (!request.Query("datanode")) {
      EXPECT_EQ(request.body, "");
      auto to = Reply(307, "");
      to.headers = {{"Location", data_node + request.target + "&datanode=true"}};
      return to;
    }
    return Transfer(request, op, path);
  }

  std::string data_node;
  std::map<std::string, std::string> files;
  bool standby = false;
  int version = 1;

 private:
  net::HttpServerReply Transfer(const net::HttpServerRequest& request, const std::string& op,
                                const std::string& path) {
    if (op == "CREATE") {
      files[path] = request.body;
      return Reply(201, "");
    }
    if (op == "APPEND") {
      files[path] += request.body;
      return Reply(200, "");
    }
    if (!files.contains(path)) return Missing();
    const auto offset = std::stoull(std::string(*request.Query("offset")));
    const auto length = std::stoull(std::string(*request.Query("length")));
    return Reply(200, files[path].substr(offset, length));
  }
  net::HttpServerReply Missing() const { return Exception(404, "FileNotFoundException"); }
  std::string Entry(const std::string& name, const std::string& type, size_t length) const {
    return R"({"pathSuffix":")" + name + R"(","type":")" + type +
           R"(","fileId":7,"modificationTime":)" + std::to_string(1000 * version) +
           R"(,"length":)" + std::to_string(length) + "}";
  }
  net::HttpServerReply Status(const std::string& path) const {
    return Reply(200, R"({"FileStatus":)" + Entry("", "FILE", files.at(path).size()) + "}");
  }
  // One entry a page.
  net::HttpServerReply List(const std::string& folder, const std::string& after) const {
    std::map<std::string, std::string> entries;
    for (const auto& [path, bytes] : files) {
      if (!path.starts_with(folder + "/")) continue;
      const std::string rest = path.substr(folder.size() + 1);
      const size_t slash = rest.find('/');
      entries[rest.substr(0, slash)] = slash == std::string::npos
                                           ? Entry(rest, "FILE", bytes.size())
                                           : Entry(rest.substr(0, slash), "DIRECTORY", 0);
    }
    const auto next = entries.upper_bound(after);
    const size_t left =
        next == entries.end() ? 0 : static_cast<size_t>(std::distance(next, entries.end())) - 1;
    return Reply(200, R"({"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[)" +
                          (next == entries.end() ? "" : next->second) +
                          R"(]}},"remainingEntries":)" + std::to_string(left) + "}}");
  }
};

class WebHdfs : public testing::Test {
 protected:
  WebHdfs() {
    for (size_t i = 0; i < 2; ++i) {
      hdfs_[i].data_node = servers_[i].url("");
      servers_[i].Use(
          [this, i](const net::HttpServerRequest& request) { return hdfs_[i].Answer(request); });
    }
  }
  std::string Uri(const std::string& path) const {
    return "webhdfs://" + servers_[0].host() + path;
  }
  FakeHdfs hdfs_[2];
  TestObjectServer servers_[2];
  TestContext context_{{{"HADOOP_USER_NAME", "me"}}, {}};
  ObjectStores stores_{context_.Make()};
};

TEST_F(WebHdfs, ReadsRangesFromDataNodes) {
  hdfs_[0].files["/a b/c"] = "0123456789";
  const auto object = stores_.Open(Uri("/a b/c"));
  ASSERT_TRUE(object.ok()) << object.status().message();
  EXPECT_EQ((*object)->info().bytes, 10u);
  char some[4] = {};
  EXPECT_EQ((*object)->ReadAt(3, some, 4).value(), 4u);
  EXPECT_EQ(std::string(some, 4), "3456");
  EXPECT_EQ((*object)->ReadAt(8, some, 4).value(), 2u);
  hdfs_[0].version = 2;
  EXPECT_THAT((*object)->ReadAt(0, some, 4).status().message(),
              HasSubstr("/a b/c has changed since it was opened"));
  hdfs_[0].files.clear();
  EXPECT_EQ((*object)->ReadAt(0, some, 4).status().code(), Code::kNotFound);
  EXPECT_THAT(stores_.Open(Uri("/none")).status().message(), HasSubstr("there is no such file"));
}

TEST_F(WebHdfs, ListsFolderByFolderAndPageByPage) {
  for (const char* path : {"/d/part-1", "/d/part-2", "/d/_SUCCESS", "/d/x/part-3", "/e/part-4"})
    hdfs_[0].files[path] = "x";
  EXPECT_THAT(stores_.Expand(Uri("/d/")).value(),
              ElementsAre(Uri("/d/part-1"), Uri("/d/part-2"), Uri("/d/x/part-3")));
  EXPECT_THAT(stores_.Expand(Uri("/d/part-*")).value(),
              ElementsAre(Uri("/d/part-1"), Uri("/d/part-2")));
  EXPECT_THAT(stores_.Expand(Uri("/?/part-4")).value(), ElementsAre(Uri("/e/part-4")));
}

TEST_F(WebHdfs, WritesBesideTheFileAndMovesIt) {
  hdfs_[0].files["/m/model"] = "old";
  {
    auto writer = stores_.Create(Uri("/m/model")).value();
    ASSERT_TRUE(writer->Append("new").ok());
    EXPECT_EQ(hdfs_[0].files["/m/model"], "old");
    ASSERT_TRUE(writer->Append(std::string(20 << 20, 'x')).ok());
    EXPECT_EQ(hdfs_[0].files.size(), 2u);
    EXPECT_EQ(writer->Finish().value().bytes, 3u + (20 << 20));
  }
  EXPECT_EQ(hdfs_[0].files.size(), 1u);
  EXPECT_EQ(hdfs_[0].files["/m/model"], "new" + std::string(20 << 20, 'x'));
  {
    auto writer = stores_.Create(Uri("/m/other")).value();
    ASSERT_TRUE(writer->Append(std::string(20 << 20, 'x')).ok());
  }
  EXPECT_EQ(hdfs_[0].files.size(), 1u);
}

TEST_F(WebHdfs, TheActiveNameNodeAnswers) {
  hdfs_[0].standby = true;
  hdfs_[1].files["/a"] = "01234";
  const std::string both = "webhdfs://" + servers_[0].host() + "," + servers_[1].host() + "/a";
  const auto object = stores_.Open(both);
  ASSERT_TRUE(object.ok()) << object.status().message();
  const size_t asked = servers_[0].requests().size();
  char some[4] = {};
  EXPECT_TRUE((*object)->ReadAt(0, some, 4).ok());
  EXPECT_EQ(servers_[0].requests().size(), asked);
  hdfs_[1].standby = true;
  const Status none = (*object)->ReadAt(0, some, 4).status();
  EXPECT_EQ(none.code(), Code::kUnavailable);
  EXPECT_THAT(none.message(), HasSubstr("no name node is active"));
  EXPECT_EQ(context_.waits.size(), 5u);
}

TEST_F(WebHdfs, RefusalsNameTheUser) {
  servers_[0].Fail({Exception(403, "AccessControlException")});
  const Status refused = stores_.Open(Uri("/a")).status();
  EXPECT_EQ(refused.code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("AccessControlException (It is so.); the user is me"));
  servers_[0].Fail({Reply(401, "<html>")});
  EXPECT_THAT(stores_.Open(Uri("/a")).status().message(), HasSubstr("HDFS_DELEGATION_TOKEN"));
}

TEST_F(WebHdfs, AnswersThatLieAreErrors) {
  for (const char* wrong : {"", "[]", "{}", R"({"FileStatus":{"length":-1,"type":"FILE"}})",
                            R"({"FileStatus":{"length":"x","type":"FILE"}})"}) {
    servers_[0].Fail({Reply(200, wrong)});
    EXPECT_EQ(stores_.Open(Uri("/a")).status().code(), Code::kDataLoss) << wrong;
  }
  servers_[0].Fail(
      {Reply(200, R"({"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[)"
                  R"({"pathSuffix":"../x","type":"FILE","length":1}]}},"remainingEntries":0}})")});
  EXPECT_THAT(stores_.Expand(Uri("/d/")).status().message(), HasSubstr("a file elsewhere"));
}

}  // namespace
}  // namespace shoal::data
