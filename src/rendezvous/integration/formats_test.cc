// Bytes: journal, log segments, spool, frames, messages, proofs.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/fault_injection.h"
#include "base/file.h"
#include "rendezvous/journal/group_committer.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_record.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/logs/log_spool.h"
#include "rendezvous/logs/task_logs.h"
#include "rendezvous/protocol/cluster_message.h"
#include "rendezvous/protocol/job_event.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

TEST(JournalFormat, IsWhatTheDocumentShows) {
  EXPECT_EQ(Hex(EncodeJournalHeader()),
            "53484f414c4a4e4c01000000"
            "40e649aa");
  EXPECT_EQ(Hex(EncodeJournalRecord("{}")),
            "02000000"
            "317bbc54"
            "7b7d");
}

TEST(JournalFormat, EveryCutAndEveryFlippedByteLosesOnlyWhatComesAfter) {
  const std::string one = EncodeJournalRecord("first"), two = EncodeJournalRecord("second");
  const std::string whole = EncodeJournalHeader() + one + two;
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto content = ParseJournal(std::string_view(whole).substr(0, cut));
    ASSERT_TRUE(content.ok()) << cut;
    const size_t expected = (cut >= kJournalHeaderBytes + one.size()) + (cut >= whole.size());
    EXPECT_EQ(content->records.size(), expected) << cut;
  }
  for (size_t at = kJournalHeaderBytes; at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    const auto content = ParseJournal(bad);
    ASSERT_TRUE(content.ok());
    EXPECT_EQ(content->records.size(), at < kJournalHeaderBytes + one.size() ? 0u : 1u) << at;
  }
  EXPECT_FALSE(ParseJournal("this is something else altogether").ok());
}

TEST(Journal, AppendsGoOnWhereTheLastOneStoppedAndTornTailsAreCut) {
  const auto dir = TempDir::Create();
  const auto path = dir->path() / "journal";
  for (int round = 0; round < 3; ++round) {
    auto opened = Journal::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_EQ(opened->records.size(), static_cast<size_t>(round));
    EXPECT_EQ(opened->cut_bytes, round == 0 ? 0u : 3u);
    EXPECT_FALSE(Journal::Open(path).ok());  // locked
    ASSERT_TRUE(opened->journal.Append("record " + std::to_string(round)).ok());
    ASSERT_TRUE(WriteAll(opened->journal.fd(), "\x01\x02\x03").ok());
  }
}

TEST(Journal, AFullDiskIsAnErrorThatNamesIt) {
  const auto dir = TempDir::Create();
  auto opened = Journal::Open(dir->path() / "journal");
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(SetFaults("journal.append=ENOSPC@1").ok());
  const Status full = opened->journal.Append("x");
  ASSERT_TRUE(SetFaults("").ok());
  EXPECT_EQ(full.code(), Code::kResourceExhausted) << full.ToString();
}

TEST(StartMessage, RoundTripAndHostileFields) {
  StartMessage message;
  message.attempt = 3;
  message.argv = {"python", "train.py"};
  message.env = {{"A", "b"}};
  message.grace_ms = 500;
  EXPECT_EQ(ToJson(message).size(), 7u) << "what is not asked for is not sent";
  message.processes = {{}, {{"SHOAL_LOCAL_RANK", "1"}}};
  message.ready.by = job::ReadyBy::kHttp;
  message.ready.path = "/health";
  message.port = 4711;
  message.on_log = {"*error*"};
  const json::object good = ToJson(message);
  const auto again = StartFromJson(good);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->processes, message.processes);
  EXPECT_EQ(again->ready, message.ready);
  EXPECT_EQ(again->port, 4711);
  EXPECT_EQ(again->on_log, message.on_log);
  for (const auto& [field, bad] :
       std::vector<std::pair<const char*, const char*>>{{"processes", "[[1]]"},
                                                        {"processes", "{}"},
                                                        {"on_log", "[1]"},
                                                        {"ready", "[]"},
                                                        {"ready", R"({"by":"magic"})"},
                                                        {"ready", R"({"by":"tcp","port":70000})"},
                                                        {"argv", "[]"}}) {
    json::object object = good;
    object[field] = *ParseJson(bad);
    EXPECT_FALSE(StartFromJson(object).ok()) << field << " " << bad;
  }
}

TEST(LogSegment, NamesRoundTrip) {
  const LogKey key{"web-server.v2", 12, 3};
  EXPECT_EQ(LogFileName(key), "web-server.v2-12.3.log");
  EXPECT_EQ(ParseLogFileName("web-server.v2-12.3.log"), key);
  for (const char* wrong :
       {"", ".log", "a.0.log", "-1.0.log", "a-1.log", "a-x.0.log", "a-1.0.idx", "..-1.0.log",
        "a%2Fb-1.0.log", "a b-1.0.log", "a\n-1.0.log", "caf\xe9-1.0.log"}) {
    EXPECT_FALSE(ParseLogFileName(wrong)) << wrong;
  }
}

TEST(LogSegment, EachByteIsStoredOnceHoweverOftenItIsSent) {
  const auto dir = TempDir::Create();
  const LogKey key{"worker", 0, 0};
  {
    auto log = LogWriter::Open(dir->path(), key);
    ASSERT_TRUE(log.ok());
    EXPECT_EQ(log->Append(0, "abc").value_or(-1), 3);
    EXPECT_EQ(log->Append(0, "abc").value_or(-1), 0);
    EXPECT_EQ(log->Append(1, "bcdef").value_or(-1), 3);
  }
  auto log = LogWriter::Open(dir->path(), key);
  EXPECT_EQ(log->size(), 6);
  EXPECT_EQ(log->Append(4, "efg").value_or(-1), 1);
  EXPECT_EQ(ReadLog(dir->path(), key, 0, 100).value_or(""), "abcdefg");
  EXPECT_EQ(ReadLog(dir->path(), key, 5, 1).value_or(""), "f");
  EXPECT_EQ(ReadLog(dir->path(), key, 7, 10).value_or("x"), "");
}

TEST(LogSegment, ADirectoryIsKnownAgainByWhateverPath) {
  const auto dir = TempDir::Create();
  const auto other = TempDir::Create();
  const auto place = DirectoryIdentity(dir->path());
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(*DirectoryIdentity(dir->path() / ".." / dir->path().filename()), *place);
  EXPECT_NE(*DirectoryIdentity(other->path()), *place);
  EXPECT_FALSE(DirectoryIdentity(dir->path() / "none").ok());
}

TEST(TaskLogs, OfWhatALauncherSaysItWroteCountsWhatIsThereAndIsSynced) {
  const auto dir = TempDir::Create();
  int lost = 0;
  TaskLogs logs(dir->path(), [&](const LogKey&, const Status&) { ++lost; });
  const LogKey key{"worker", 0, 0};
  EXPECT_EQ(logs.Written(key, 0), 0);
  logs.Finish(key);  // it printed nothing: that makes no file
  EXPECT_EQ(lost, 0);
  EXPECT_FALSE(std::filesystem::exists(dir->path() / LogFileName(key)));
  {
    auto log = LogWriter::Open(dir->path(), key);
    ASSERT_TRUE(log.ok());
    EXPECT_EQ(log->Append(0, "abc").value_or(-1), 3);
  }
  EXPECT_EQ(logs.Written(key, 2), 2);
  EXPECT_EQ(logs.Written(key, int64_t{1} << 50), 3);
  EXPECT_EQ(logs.Written(key, -1), 0);
  logs.Finish(key);
  std::vector<int> fds;
  const auto held = logs.TakeFinished(&fds);
  EXPECT_EQ(fds.size(), 1u);
  EXPECT_EQ(logs.Store(key, 3, "d"), 4);  // and goes on at its end, should the launcher's disk fail
}

TEST(LogSegment, AGapIsALineOfItsLengthAndNoZeros) {
  const auto dir = TempDir::Create();
  const LogKey key{"worker", 0, 0};
  auto log = LogWriter::Open(dir->path(), key);
  ASSERT_TRUE(log->Append(0, "begin").ok());
  ASSERT_TRUE(log->Append(105, "after\n").ok());
  const std::string text = *ReadLog(dir->path(), key, 0, 1000);
  EXPECT_EQ(text.size(), 111u);
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_TRUE(text.starts_with("begin\n[shoal: 100 bytes of this log could not be stored] "))
      << text;
  EXPECT_TRUE(text.ends_with(" \nafter\n"));
  // The rest of a long gap is a hole that ends a line.
  ASSERT_TRUE(log->Append((int64_t{8} << 20) + 111, "end\n").ok());
  EXPECT_EQ(*ReadLog(dir->path(), key, log->size() - 5, 10), "\nend\n");
}

TEST(LogSegment, AWriteThatFailedLeavesNothing) {
  const auto dir = TempDir::Create();
  const LogKey key{"worker", 0, 0};
  auto log = LogWriter::Open(dir->path(), key);
  ASSERT_TRUE(log->Append(0, "abc").ok());
  ASSERT_TRUE(SetFaults("file.write=ENOSPC@3").ok());
  EXPECT_FALSE(log->Append(10, "def").ok());  // the line, its end, and then
  ASSERT_TRUE(SetFaults("file.write=ENOSPC@1").ok());
  EXPECT_FALSE(log->Append(10, "def").ok());
  ASSERT_TRUE(SetFaults("").ok());
  EXPECT_EQ(std::filesystem::file_size(dir->path() / LogFileName(key)),
            static_cast<uintmax_t>(log->size()));
}

// While it exists, no file of this process can grow beyond so many bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit small = before_;
    small.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~FullDisk() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    ::signal(SIGXFSZ, signal_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST(TaskLogs, LinesThatHaveNoRoomAreHeldAndStoredLater) {
  const auto dir = TempDir::Create();
  FakeClock clock;
  TaskLogs logs(
      dir->path(), [](const LogKey&, const Status&) { ADD_FAILURE(); }, &clock);
  const LogKey key{"worker", 0, 0};
  EXPECT_EQ(logs.Store(key, 0, "one\n"), 4);
  {
    const FullDisk full(6);
    EXPECT_EQ(logs.Store(key, 4, "two\n"), 4);
    EXPECT_EQ(logs.Store(key, 4, "two\n"), 4);  // sent again
    EXPECT_EQ(logs.Store(key, 8, "three\n"), 4);
    EXPECT_EQ(logs.Ack(key), 4);
  }
  clock.Advance(kUnstoredLinesTimeout / 2);
  logs.Unacked();
  EXPECT_EQ(logs.Ack(key), 14);
  EXPECT_EQ(*ReadLog(dir->path(), key, 0, 100), "one\ntwo\nthree\n");
}

TEST(TaskLogs, LinesThatAreHeldForTooLongAreGivenUpAndTheLogSaysSo) {
  const auto dir = TempDir::Create();
  FakeClock clock;
  int lost = 0;
  TaskLogs logs(
      dir->path(), [&](const LogKey&, const Status&) { ++lost; }, &clock);
  const LogKey key{"worker", 0, 0};
  ASSERT_EQ(logs.Store(key, 0, "one\n"), 4);
  {
    const FullDisk full(4);
    EXPECT_EQ(logs.Store(key, 4, std::string(200, 'x')), 4);
    EXPECT_EQ(logs.Ack(key), 4);
    clock.Advance(kUnstoredLinesTimeout);
    logs.Unacked();
    EXPECT_EQ(lost, 1);
    EXPECT_EQ(logs.Ack(key), 204);
  }
  EXPECT_EQ(logs.Store(key, 204, "three\n"), 210);
  const std::string text = *ReadLog(dir->path(), key, 0, 1000);
  EXPECT_TRUE(text.starts_with("one\n\n[shoal: 200 bytes of this log could not be stored] "))
      << text;
  EXPECT_TRUE(text.ends_with("\nthree\n"));
  EXPECT_EQ(text.find('\0'), std::string::npos);
}

TEST(TaskLogs, TheLastLinesOfAnEndedProgramAreHeldToo) {
  const auto dir = TempDir::Create();
  FakeClock clock;
  int lost = 0;
  TaskLogs logs(
      dir->path(), [&](const LogKey&, const Status&) { ++lost; }, &clock);
  std::vector<LogKey> finished;
  logs.OnFinishedLate([&](const LogKey& one) { finished.push_back(one); });
  const LogKey key{"worker", 0, 0}, gone{"worker", 1, 0};
  ASSERT_EQ(logs.Store(key, 0, "one\n"), 4);
  ASSERT_EQ(logs.Store(gone, 0, "one\n"), 4);
  {
    const FullDisk full(4);
    EXPECT_EQ(logs.Store(key, 4, "two\n"), 4);
    EXPECT_FALSE(logs.Finish(key));
    EXPECT_FALSE(logs.RetryEnded());
    EXPECT_TRUE(finished.empty());
  }
  EXPECT_TRUE(logs.RetryEnded());
  EXPECT_EQ(finished, std::vector<LogKey>{key});
  EXPECT_EQ(*ReadLog(dir->path(), key, 0, 100), "one\ntwo\n");
  EXPECT_EQ(lost, 0);
  {
    const FullDisk full(4);
    EXPECT_EQ(logs.Store(gone, 4, std::string(200, 'x')), 4);
    EXPECT_FALSE(logs.Finish(gone));
    clock.Advance(kUnstoredLinesTimeout);
    EXPECT_FALSE(logs.RetryEnded()) << "the line that marks the gap has no room either";
    EXPECT_EQ(lost, 1);
  }
  EXPECT_TRUE(logs.RetryEnded());
  EXPECT_EQ(finished, (std::vector<LogKey>{key, gone}));
  EXPECT_TRUE(ReadLog(dir->path(), gone, 0, 1000)
                  ->starts_with("one\n\n[shoal: 200 bytes of this log could not be stored] "));
  std::vector<int> fds;
  logs.TakeFinished(&fds);
  EXPECT_EQ(fds.size(), 2u);
}

TEST(TaskLogs, ALongGapTakesNoRoomAndIsReadAsLines) {
  const auto dir = TempDir::Create();
  const LogKey key{"worker", 0, 0};
  auto log = LogWriter::Open(dir->path(), key);
  const std::string own("own\0zero\n", 9);
  ASSERT_TRUE(log->Append(0, own).ok());
  const int64_t end = 20'000'003;
  ASSERT_TRUE(log->Append(end, "go on\n").ok());
  struct stat info {};
  ASSERT_EQ(::fstat(log->fd(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 4 << 20);
  const std::string text = *ReadLog(dir->path(), key, 0, static_cast<size_t>(end) + 100);
  EXPECT_TRUE(text.starts_with(own + "\n[shoal: 19999994 bytes of this log could not be stored] "));
  EXPECT_TRUE(text.ends_with(" \ngo on\n"));
  EXPECT_EQ(text.find('\0', own.size()), std::string::npos);
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 17);
  // In any pieces.
  for (const int64_t at : {int64_t{1'048'000}, int64_t{1'100'001}, int64_t{19'999'000}}) {
    EXPECT_EQ(*ReadLog(dir->path(), key, at, 1'000), text.substr(static_cast<size_t>(at), 1'000));
  }
}

TEST(TaskLogs, ALogThatIsGoneIsToldOfOnce) {
  const auto dir = TempDir::Create();
  std::vector<std::string> told;
  TaskLogs logs(dir->path(),
                [&](const LogKey&, const Status& why) { told.push_back(why.message()); });
  const LogKey key{"worker", 0, 0};
  EXPECT_EQ(logs.Written(key, 0), 0);
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(logs.Written(key, 5), 0);
  EXPECT_EQ(logs.Written(key, 9), 0);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].find("worker-0.0.log") != std::string::npos) << told[0];
}

TEST(TaskLogs, AGapAtTheEndIsToldOfAsWell) {
  const auto dir = TempDir::Create();
  FakeClock clock;
  TaskLogs logs(
      dir->path(), [](const LogKey&, const Status&) {}, &clock);
  const LogKey key{"worker", 0, 0};
  {
    const FullDisk full(0);
    logs.Store(key, 0, std::string(kMaxUnstoredBytes + 1, 'x'));
  }
  logs.Finish(key);
  EXPECT_TRUE(ReadLog(dir->path(), key, 0, 100)->starts_with("\n[shoal: 4194305 bytes"));
}

TEST(LogSpool, BeginsWhereTheRestIsStored) {
  LogSpool spool;
  spool.Begin(2, 100);
  spool.Append(2, "abc");
  EXPECT_EQ(spool.Next()->offset, 100);
  EXPECT_EQ(spool.log_bytes(2), 103);
}

TEST(LogSpool, SendsAgainWhatWasNotAcknowledged) {
  LogSpool spool;
  spool.Append(0, "one ");
  EXPECT_EQ(spool.Next()->bytes, "one ");
  spool.Append(0, "two");
  spool.Append(0, " three");  // joins what has not left
  spool.Append(1, "four");
  EXPECT_FALSE(spool.AllSent(0));
  EXPECT_EQ(spool.Next()->bytes, "two three");
  EXPECT_TRUE(spool.AllSent(0));
  EXPECT_FALSE(spool.AllSent(1));
  spool.Ack(0, 4);
  EXPECT_EQ(spool.bytes(), 13u);
  spool.Rewind();
  const auto* again = spool.Next();
  EXPECT_EQ(again->offset, 4);
  EXPECT_EQ(again->bytes, "two three");
  spool.AckAll(0);
  EXPECT_EQ(spool.Next()->bytes, "four");
  EXPECT_EQ(spool.log_bytes(1), 4);
  spool.AckAll(1);
  EXPECT_EQ(spool.bytes(), 0u);
  EXPECT_EQ(spool.Next(), nullptr);
}

TEST(LogSpool, LongRunsAreCutIntoFrames) {
  LogSpool spool;
  spool.Append(0, std::string(kMaxLogData * 2 + 5, 'x'));
  int64_t offset = 0;
  for (const size_t size : {kMaxLogData, kMaxLogData, size_t{5}}) {
    const auto* chunk = spool.Next();
    ASSERT_NE(chunk, nullptr);
    EXPECT_EQ(chunk->bytes.size(), size);
    EXPECT_EQ(chunk->offset, offset);
    offset += static_cast<int64_t>(size);
  }
}

TEST(LastLine, IsTheLastWithText) {
  LastLine last;
  last.Feed("first\nsec");
  EXPECT_EQ(last.text(), "sec");
  last.Feed("ond\n\n  \n-----\n");
  EXPECT_EQ(last.text(), "second");
  last.Feed("third\n\t\n");
  last.Feed("\n");
  EXPECT_EQ(last.text(), "third");
  last.Feed(" ");
  EXPECT_EQ(last.text(), "third");
  last.Feed("\n");
  last.Feed("a\nb\n\nfourth\n \nfif");
  EXPECT_EQ(last.text(), "fif");
  last.Feed("\r\n\n");
  EXPECT_EQ(last.text(), "fif\r");
  // Long enough for the advice at the end of a sentence with paths.
  last.Feed(std::string(2000, 'x'));
  EXPECT_EQ(last.text().size(), 1000u);
}

TEST(Protocol, LogFramesRoundTripAndAreWhatTheDocumentShows) {
  const std::string frame = EncodeLogFrame({"ps", 1, 2}, 3, "hi\n");
  EXPECT_EQ(Hex(frame),
            "534c0102"
            "01000000"
            "02000000"
            "0300000000000000"
            "7073"
            "68690a");
  const auto decoded = DecodeLogFrame(frame);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->key, (LogKey{"ps", 1, 2}));
  EXPECT_EQ(decoded->offset, 3);
  EXPECT_EQ(decoded->bytes, "hi\n");
  for (size_t cut = 0; cut < 22; ++cut) EXPECT_FALSE(DecodeLogFrame(frame.substr(0, cut)).ok());
}

TEST(Protocol, JournalFramesRoundTripAndAreWhatTheDocumentShows) {
  const std::string frame = EncodeJournalFrame(0, "SHO");
  EXPECT_EQ(Hex(frame),
            "534a01000000000000000000"
            "53484f");
  EXPECT_TRUE(IsJournalFrame(frame));
  EXPECT_FALSE(IsJournalFrame(EncodeLogFrame({"ps", 1, 2}, 3, "hi\n")));
  const std::string other = EncodeJournalFrame(77, "bytes");
  const auto decoded = DecodeJournalFrame(other);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->offset, 77);
  EXPECT_EQ(decoded->bytes, "bytes");
  for (size_t cut = 0; cut < 12; ++cut) EXPECT_FALSE(DecodeJournalFrame(frame.substr(0, cut)).ok());
  EXPECT_FALSE(
      DecodeJournalFrame(EncodeJournalFrame(0, std::string(kMaxJournalData + 1, 'x'))).ok());
  EXPECT_FALSE(DecodeJournalFrame(EncodeJournalFrame(-1, "x")).ok());
}

TEST(Protocol, ProofsAreWhatTheDocumentShows) {
  const std::string a(64, 'a'), b(64, 'b');
  EXPECT_EQ(ClientProof("token", a, b),
            "748d39c8e66346b05130d8095e1042504eea306b1dd53545055cc27bc3d4f113");
  EXPECT_EQ(ServerProof("token", a, b),
            "89a1d744e0dc4d4a62a2e9f80a60dfa8b08d9b494b8010db94b396aa45fef5db");
}

TEST(Protocol, CleanTextIsValidAndBounded) {
  EXPECT_EQ(CleanText("a\tb\x01", 10), "a b ");
  EXPECT_EQ(CleanText("\xc3\xa4\xff\xc0\x80\xed\xa0\x80", 20), "\xc3\xa4??????");
  EXPECT_EQ(CleanText("\xc3\xa4\xc3\xa4", 3), "\xc3\xa4");
}

TEST(Protocol, MessagesRoundTrip) {
  const TaskHello hello{"worker", 3, 2, "abc", 99, 4, 1, true};
  const auto again = TaskHelloFromJson(ToJson(hello));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->index, 3);
  EXPECT_EQ(again->last_attempt, 1);
  EXPECT_TRUE(again->has_program);
  StartMessage start;
  start.argv = {"a", "b"};
  start.env = {{"X", "1"}};
  const auto read = StartFromJson(ToJson(start));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->env, start.env);
  EXPECT_FALSE(
      StartFromJson(
          {{"attempt", 0}, {"argv", json::array{}}, {"env", json::array{}}, {"grace_ms", 0}})
          .ok());
}

TEST(Events, RoundTripThroughJson) {
  JobEvent event;
  event.type = JobEvent::Type::kTask;
  event.seq = 9;
  event.role = "worker";
  event.index = 2;
  event.task_state = job::TaskState::kEnded;
  event.end = job::Exited(7);
  event.last_line = "oh";
  event.will_restart = true;
  const auto task = EventFromJson(EventToJson(event));
  ASSERT_TRUE(task.ok()) << task.status().ToString();
  EXPECT_EQ(task->end, event.end);
  EXPECT_EQ(task->last_line, "oh");
  EXPECT_TRUE(task->will_restart);

  JobEvent verdict;
  verdict.type = JobEvent::Type::kVerdict;
  verdict.verdict = {job::JobState::kFailed, "why", false, {{"worker", 0, 2, job::Signaled(9)}}};
  const auto read = EventFromJson(EventToJson(verdict));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_FALSE(read->verdict.gathered);
  EXPECT_EQ(read->verdict.tasks[0].attempts, 2);
  verdict.verdict.state = job::JobState::kSuspended;
  EXPECT_EQ(EventFromJson(EventToJson(verdict))->verdict.state, job::JobState::kSuspended);
  verdict.verdict.state = job::JobState::kRunning;
  EXPECT_FALSE(EventFromJson(EventToJson(verdict)).ok());
  EXPECT_FALSE(EventFromJson({{"event", "task"}, {"seq", 1}}).ok());
}

TEST(Events, AStallKeepsItsEvidence) {
  JobEvent event;
  event.type = JobEvent::Type::kStalled;
  event.text = "stalled: …";
  event.body = {{"tasks", json::array{json::object{{"role", "ps"}, {"still_ms", 7}}}}};
  const auto read = EventFromJson(EventToJson(event));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->body, event.body);
  EXPECT_EQ(read->text, event.text);
  JournalRecord record;
  record.kind = JournalRecord::Kind::kStalled;
  record.body = event.body;
  record.counted = true;
  const auto again = JournalRecordFromText(JournalRecordToText(record));
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->body, event.body);
  EXPECT_TRUE(again->counted);
  EXPECT_FALSE(JournalRecordFromText(R"({"fact":"stalled","seq":1,"ms":0,"body":[]})").ok());
  EXPECT_FALSE(JournalRecordFromText(R"({"fact":"resumed","seq":1,"ms":0,"replicas":-1})").ok());
}

TEST(DescriptionFormat, ComesBackWhole) {
  std::string cluster = R"({"generation":7,"roles":{"worker":[)";
  for (int i = 0; i < 2000; ++i) cluster += fmt::format("\"host-{}.example:{}\",", i, 20000 + i);
  cluster += "]}}";
  const std::string frame = EncodeClusterMessage(7, cluster);
  EXPECT_EQ(Hex(frame.substr(0, 4)), "53440100");
  EXPECT_LT(frame.size(), cluster.size() / 4);
  const auto back = DecodeClusterMessage(frame);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back->generation, 7);
  EXPECT_EQ(back->cluster, cluster);
}

TEST(DescriptionFormat, WhatIsCutOrLiesAboutItsLengthIsRefused) {
  const std::string whole = EncodeClusterMessage(1, "{\"generation\":1}");
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(DecodeClusterMessage(std::string_view(whole).substr(0, cut)).ok()) << cut;
  }
  for (size_t at = 0; at < 8; ++at) {  // the magic, the version, and the bytes of text
    std::string wrong = whole;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x40);
    EXPECT_FALSE(DecodeClusterMessage(wrong).ok()) << at;
  }
  EXPECT_FALSE(DecodeClusterMessage(whole + "more").ok());
}

TEST(GroupCommitter, TellsWhenTheDiskHasIt) {
  net::Loop loop;
  const auto dir = TempDir::Create();
  const auto fd = OpenFile(dir->path() / "f", O_WRONLY | O_CREAT);
  const auto committer = GroupCommitter::Make(&loop);
  int done = 0;
  for (int i = 1; i <= 3; ++i) {
    committer->Sync({fd->get()}, [&](const Status& status) { done += status.ok(); });
    ASSERT_TRUE(loop.RunUntil([&] { return done == i; }, std::chrono::seconds(20)));
  }
  committer->Sync({-1}, [&](const Status& status) { done += !status.ok(); });
  ASSERT_TRUE(loop.RunUntil([&] { return done == 4; }, std::chrono::seconds(20)));
  EXPECT_EQ(committer->syncs(), 4);
}

}  // namespace
}  // namespace shoal::rendezvous
