// Lists and watches that end, break and expire; and the objects of a hostile API server.
#include "api/operator/object_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>

#include "api/operator/kube_objects.h"

namespace shoal::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Line(const std::string& type, const std::string& name, int version) {
  return R"({"type":")" + type + R"(","object":{"metadata":{"namespace":"n","name":")" + name +
         R"(","uid":"u-)" + name + R"(","resourceVersion":")" + std::to_string(version) +
         R"("},"spec":{"job":{}}}})";
}

// Plays what each list and each watch brings, then ends.
class ScriptedFeed final : public ObjectFeed {
 public:
  struct Stream {
    std::vector<std::string> lines;
    Status end = {};
  };

  Result<ShoalJobList> List() override {
    asked.emplace_back("list");
    if (lists.empty()) return Unavailable("away");
    Result<ShoalJobList> list = std::move(lists.front());
    lists.pop_front();
    return list;
  }
  Status Watch(const std::string& version,
               const std::function<Status(std::string_view)>& on_line) override {
    asked.push_back("watch " + version);
    if (streams.empty()) {
      ended = true;
      return Cancelled("over");
    }
    const Stream stream = streams.front();
    streams.pop_front();
    for (const std::string& line : stream.lines) TRY(on_line(line));
    return stream.end;
  }
  bool Pause(int failures) override {
    pauses.push_back(failures);
    return failures < 10;
  }
  bool ending() override { return ended; }

  std::deque<Result<ShoalJobList>> lists;
  std::deque<Stream> streams;
  std::vector<std::string> asked;
  std::vector<int> pauses;
  bool ended = false;
};

class ObjectWatchTest : public testing::Test {
 protected:
  void Follow() {
    ObjectSink sink;
    sink.on_list = [this](const ShoalJobList& list) { seen_.push_back("list " + list.version); };
    sink.on_change = [this](const ShoalJob& object) { seen_.push_back("+" + object.key.name); };
    sink.on_delete = [this](const ShoalJob& object) { seen_.push_back("-" + object.key.name); };
    sink.on_trouble = [this](const Status& why) { seen_.push_back("! " + why.message()); };
    FollowObjects(&feed_, sink);
  }
  static ShoalJobList ListAt(const std::string& version) {
    ShoalJobList list;
    list.version = version;
    return list;
  }

  ScriptedFeed feed_;
  std::vector<std::string> seen_;
};

TEST_F(ObjectWatchTest, GoesOnFromTheLastVersionWhenAWatchEnds) {
  feed_.lists.emplace_back(ListAt("5"));
  feed_.streams.push_back({{Line("ADDED", "a", 6), Line("MODIFIED", "a", 7)}});
  feed_.streams.push_back({{Line("BOOKMARK", "a", 9)}});
  feed_.streams.push_back({{Line("DELETED", "a", 10)}});
  Follow();
  EXPECT_THAT(feed_.asked, ElementsAre("list", "watch 5", "watch 7", "watch 9", "watch 10"));
  EXPECT_THAT(seen_, ElementsAre("list 5", "+a", "+a", "-a"));
  EXPECT_THAT(feed_.pauses, IsEmpty());
}

TEST_F(ObjectWatchTest, ListsAgainWhenTheVersionHasExpired) {
  feed_.lists.emplace_back(ListAt("5"));
  feed_.lists.emplace_back(ListAt("50"));
  feed_.lists.emplace_back(ListAt("60"));
  // As a line of the stream, and as the answer to the request.
  feed_.streams.push_back(
      {{Line("ADDED", "a", 6),
        R"({"type":"ERROR","object":{"code":410,"message":"too old resource version"}})"}});
  feed_.streams.push_back({{}, OutOfRange("too old resource version")});
  Follow();
  EXPECT_THAT(feed_.asked, ElementsAre("list", "watch 5", "list", "watch 50", "list", "watch 60"));
  EXPECT_THAT(seen_, ElementsAre("list 5", "+a", "list 50", "list 60"));
}

TEST_F(ObjectWatchTest, ABrokenConnectionLosesNothing) {
  feed_.lists.emplace_back(ListAt("5"));
  feed_.streams.push_back({{Line("ADDED", "a", 6)}, Unavailable("reset")});
  feed_.streams.push_back({{}, Unavailable("reset")});
  feed_.streams.push_back({{Line("ADDED", "b", 8)}});
  Follow();
  EXPECT_THAT(feed_.asked, ElementsAre("list", "watch 5", "watch 6", "watch 6", "watch 8"));
  EXPECT_THAT(seen_, ElementsAre("list 5", "+a", "+b"));
  EXPECT_THAT(feed_.pauses, ElementsAre(1, 2));
}

TEST_F(ObjectWatchTest, AnAwayServerIsToldOnce) {
  Follow();  // every list fails
  EXPECT_EQ(feed_.pauses.size(), 10U);
  EXPECT_THAT(seen_, ElementsAre("! away"));
}

TEST_F(ObjectWatchTest, ALineThatIsNoJsonEndsTheStream) {
  feed_.lists.emplace_back(ListAt("5"));
  feed_.streams.push_back({{Line("ADDED", "a", 6), "{\"type\":", Line("ADDED", "b", 7)}});
  Follow();
  EXPECT_THAT(feed_.asked, ElementsAre("list", "watch 5", "watch 6"));
  EXPECT_THAT(seen_, ElementsAre("list 5", "+a"));
}

// ---- Decoding ----

json::object Parsed(const std::string& text) { return ParseJsonObject(text).value(); }

TEST(ShoalJobTest, HostileObjectsAreRefused) {
  const auto decode = [](const std::string& name, const std::string& place,
                         const std::string& uid) {
    json::object object{{"metadata", {{"name", name}, {"namespace", place}, {"uid", uid}}}};
    return DecodeShoalJob(object).status().code();
  };
  EXPECT_EQ(decode("a.b-1", "n", "u-1"), Code::kOk);
  for (const char* const name : {"", "../x", "a/b", "a b", "A", "-a", "a\n", "a%2fb", "é"})
    EXPECT_EQ(decode(name, "n", "u"), Code::kInvalidArgument) << name;
  EXPECT_EQ(decode(std::string(254, 'a'), "n", "u"), Code::kInvalidArgument);
  EXPECT_EQ(decode("a", std::string(64, 'n'), "u"), Code::kInvalidArgument);
  EXPECT_EQ(decode("a", "../kube-system", "u"), Code::kInvalidArgument);
  EXPECT_EQ(decode("a", "n", ""), Code::kInvalidArgument);
  EXPECT_EQ(decode("a", "n", "u/../v"), Code::kInvalidArgument);
}

// Whatever is read has a name that is safe in a path, and the decoders of its parts return.
TEST(ShoalJobTest, MutatedLines) {
  const std::string line =
      R"({"type":"MODIFIED","object":{"metadata":{"namespace":"n","name":"a","uid":"u-1",)"
      R"("resourceVersion":"7","generation":3,"finalizers":["shoal.dev/job"]},"spec":{"suspend":true,)"
      R"("job":{"image":"x","roles":{"worker":{"replicas":2,"command":["sh","-c","true"]}}}},)"
      R"("status":{"phase":"Running","observedGeneration":2,"conditions":[{"type":"Failed"}]}}})";
  constexpr std::string_view kBytes = "\"\\{}[]:,/.0-e\x01\xff\nA\xc3";
  std::mt19937_64 random(7);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string mutated = line;
    for (uint64_t changes = random() % 4; changes > 0; --changes)
      mutated[random() % mutated.size()] = kBytes[random() % kBytes.size()];
    if (random() % 4 == 0) mutated.resize(random() % mutated.size());
    const auto event = DecodeShoalJobLine(mutated);
    if (!event.ok() || !event->job) continue;
    ++read;
    const std::string& name = event->job->key.name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-."), std::string::npos);
    EXPECT_NE(JobFileOf(*event->job), "");
    EXPECT_EQ(FrozenDigest(event->job->job).size(), 64U);
    (void)ReplicasOf(event->job->job);
  }
  EXPECT_GT(read, 1000);
}

TEST(ShoalJobTest, FieldsOfTheWrongTypeAreAsIfMissing) {
  const auto object = DecodeShoalJob(Parsed(
      R"({"metadata":{"name":"a","namespace":"n","uid":"u","generation":"x","finalizers":[1,{}]},
          "spec":{"job":[1],"suspend":"yes"},"status":"none"})"));
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(object->generation, 0);
  EXPECT_THAT(object->finalizers, IsEmpty());
  EXPECT_FALSE(object->suspend);
  EXPECT_TRUE(object->job.empty());
  EXPECT_TRUE(object->status.empty());
}

TEST(ShoalJobTest, AListWithoutVersionIsNoList) {
  EXPECT_EQ(DecodeShoalJobs(Parsed(R"({"items":[]})")).status().code(), Code::kDataLoss);
  const auto list = DecodeShoalJobs(Parsed(
      R"({"metadata":{"resourceVersion":"9","continue":"more"},"items":[1,{"metadata":{}},
          {"metadata":{"name":"a","namespace":"n","uid":"u"}}]})"));
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->items.size(), 1U);
  EXPECT_EQ(list->continues, "more");
}

// The API server accepts it where the schema leaves a value open.
TEST(ShoalJobTest, ADeeplyNestedObjectDoesNotHideTheOthers) {
  const std::string deep = std::string(9000, '[') + std::string(9000, ']');
  const std::string text = R"({"metadata":{"resourceVersion":"9"},"items":[
      {"metadata":{"name":"a","namespace":"n","uid":"u"},"spec":{"job":{"learn":)" +
                           deep +
                           R"(}}},{"metadata":{"name":"b","namespace":"n","uid":"v"},"spec":{"job":
      {"image":"x"}}}]})";
  const auto answer = ParseAnswer(text);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const auto list = DecodeShoalJobs(*answer);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_NE(list->items[0].unreadable, "");
  EXPECT_TRUE(list->items[0].job.empty());
  EXPECT_EQ(list->items[1].unreadable, "");
  EXPECT_EQ(list->items[1].job.at("image"), "x");
  EXPECT_FALSE(ParseAnswer(std::string(1 << 20, '[')).ok());
  EXPECT_FALSE(ParseAnswer("[]").ok());
}

ShoalJob Named(const std::string& name, const std::string& job) {
  ShoalJob object;
  object.key = {"n", name};
  object.job = Parsed(job);
  return object;
}

TEST(ShoalJobTest, TheJobFileIsNamedAfterTheObject) {
  EXPECT_EQ(JobFileOf(Named("a.b", R"({"image":"x"})")), "image: x\nname: a.b\n");
  EXPECT_EQ(JobFileOf(Named("a", R"({"name":"own"})")), "name: own\n");
  EXPECT_EQ(JobFileOf(Named(std::string(62, 'a') + "." + std::string(50, 'b'), "{}")),
            "name: " + std::string(62, 'a') + "\n");
  // Numbers as they were written, texts that look like numbers as texts.
  EXPECT_EQ(
      JobFileOf(Named("a", R"({"name":"own","learn":{"lr":0.05,"dim":100},"args":["1","true"]})")),
      "name: own\nlearn: {lr: 0.05, dim: 100}\nargs: [\"1\", \"true\"]\n");
}

TEST(ShoalJobTest, TheDigestLeavesOutReplicasAndTheOrderOfFields) {
  const auto digest = [](const std::string& job) { return FrozenDigest(Parsed(job)); };
  const std::string first = digest(R"({"image":"a","roles":{"w":{"replicas":1,"min":1}}})");
  EXPECT_EQ(first, digest(R"({"roles":{"w":{"min":1,"replicas":7}},"image":"a"})"));
  EXPECT_NE(first, digest(R"({"image":"b","roles":{"w":{"replicas":1,"min":1}}})"));
  EXPECT_NE(first, digest(R"({"image":"a","roles":{"w":{"replicas":1,"min":2}}})"));
  EXPECT_NE(first, digest(R"({"image":"a","roles":{"v":{"replicas":1,"min":1}}})"));
}

TEST(MergeChangeTest, MakesOneOfTheOther) {
  const json::object from = Parsed(R"({"a":1,"b":{"c":2,"d":3},"e":[1,2],"gone":true})");
  const json::object to = Parsed(R"({"a":1,"b":{"c":2,"d":4,"n":{}},"e":[2],"new":"x"})");
  EXPECT_EQ(ToText(MergeChange(from, to)), R"({"gone":null,"b":{"d":4,"n":{}},"e":[2],"new":"x"})");
  EXPECT_TRUE(MergeChange(to, to).empty());
}

}  // namespace
}  // namespace shoal::api
