#include "rendezvous/framework_services/remote_shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "base/file.h"
#include "net/tcp_server.h"
#include "net/websocket.h"

namespace shoal::rendezvous {
namespace {

using ::testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(20);

class RemoteShell : public ::testing::Test {
 protected:
  void SetUp() override {
    RemoteShellServerOptions options;
    options.token = "secret";
    options.env = {"PATH=/usr/bin:/bin", "WHO=worker-1"};
    options.isolation.tree = host::ProbeIsolation().tree;
    options.commands = 2;
    options.grace = std::chrono::milliseconds(100);
    auto server = RemoteShellServer::Start(&loop_, options);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(server).value();
  }

  // One command through client and server.
  struct Run {
    std::string output;
    std::optional<Result<RemoteCommandEnd>> end;
    std::unique_ptr<RemoteCommand> shell;
  };

  std::unique_ptr<Run> Start(const std::string& text, const std::string& token = "secret") {
    auto run = std::make_unique<Run>();
    RemoteCommandSpec command;
    command.host = "127.0.0.1";
    command.port = server_->port();
    command.token = token;
    command.name = "worker-1";
    command.command = text;
    command.give_up_after = std::chrono::milliseconds(200);
    Run* const raw = run.get();
    run->shell = RemoteCommand::Start(
        &loop_, command, [raw](std::string_view bytes) { raw->output += bytes; },
        [raw](Result<RemoteCommandEnd> end) { raw->end = std::move(end); });
    return run;
  }

  void Finish(Run* run) {
    ASSERT_TRUE(loop_.RunUntil([&] { return run->end.has_value(); }, kLimit));
  }

  net::Loop loop_;
  std::unique_ptr<RemoteShellServer> server_;
};

TEST_F(RemoteShell, RunsALineOfShellWithTheWorkersEnvironment) {
  const auto run = Start("echo $WHO; echo bad >&2; env | sort; exit 7");
  Finish(run.get());
  ASSERT_TRUE(run->end->ok()) << run->end->status().message();
  EXPECT_EQ((*run->end)->exit_code, 7);
  EXPECT_EQ((*run->end)->signal, 0);
  EXPECT_THAT(run->output, HasSubstr("worker-1\nbad\n"));
  EXPECT_THAT(run->output, Not(HasSubstr("HOME=")));
  EXPECT_TRUE(loop_.RunUntil([&] { return server_->running() == 0; }, kLimit));
}

TEST_F(RemoteShell, TellsWhichSignalEndedIt) {
  const auto run = Start("kill -KILL $$");
  Finish(run.get());
  ASSERT_TRUE(run->end->ok());
  EXPECT_EQ((*run->end)->signal, SIGKILL);
}

TEST_F(RemoteShell, PassesMuchOutputOn) {
  const auto run = Start("head -c 20000000 /dev/zero | tr '\\0' x");
  Finish(run.get());
  ASSERT_TRUE(run->end->ok());
  EXPECT_EQ(run->output.size(), 20'000'000u);
}

TEST_F(RemoteShell, PassesSignalsOn) {
  const auto run = Start("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done");
  ASSERT_TRUE(loop_.RunUntil([&] { return !run->output.empty(); }, kLimit));
  run->shell->Signal(SIGTERM);
  Finish(run.get());
  ASSERT_TRUE(run->end->ok());
  EXPECT_EQ((*run->end)->exit_code, 9);
}

TEST_F(RemoteShell, EndsACommandWhoseClientIsGoneWithAllItStarted) {
  auto run = Start("trap '' TERM; setsid sleep 1000 & echo $!; wait");
  ASSERT_TRUE(loop_.RunUntil([&] { return run->output.find('\n') != std::string::npos; }, kLimit));
  EXPECT_EQ(server_->running(), 1u);
  run.reset();
  EXPECT_TRUE(loop_.RunUntil([&] { return server_->running() == 0; }, kLimit));
}

TEST_F(RemoteShell, RefusesWhoHasNotTheToken) {
  const auto run = Start("echo oh", "another");
  Finish(run.get());
  EXPECT_EQ(run->end->status().code(), Code::kUnauthenticated);
  EXPECT_THAT(run->end->status().message(), HasSubstr("worker-1"));
  EXPECT_EQ(run->output, "");
}

TEST_F(RemoteShell, RefusesCommandsThatAreNoneOrTooManyOrTooLong) {
  const auto none = Start("");
  Finish(none.get());
  EXPECT_THAT(none->end->status().message(), HasSubstr("expected 1 … 131071"));
  const auto large = Start(std::string(kMostCommandBytes + 1, 'x'));
  Finish(large.get());
  EXPECT_FALSE(large->end->ok());
  const auto one = Start("echo up; sleep 1000"), two = Start("echo up; sleep 1000");
  ASSERT_TRUE(loop_.RunUntil([&] { return server_->running() == 2; }, kLimit));
  const auto three = Start("echo oh");
  Finish(three.get());
  EXPECT_THAT(three->end->status().message(), HasSubstr("2 commands run already"));
  EXPECT_EQ(three->output, "");
}

TEST_F(RemoteShell, SaysThatNobodyListensOrThatItsWorkerIsLost) {
  auto run = Start("echo up; sleep 1000");
  ASSERT_TRUE(loop_.RunUntil([&] { return !run->output.empty(); }, kLimit));
  const uint16_t port = server_->port();
  server_.reset();
  Finish(run.get());
  EXPECT_THAT(run->end->status().message(), HasSubstr("the command on worker-1"));
  RemoteCommandSpec command{"127.0.0.1", port, "secret", "worker-1", "true", {}};
  std::optional<Result<RemoteCommandEnd>> end;
  const auto shell = RemoteCommand::Start(
      &loop_, command, [](std::string_view) {},
      [&](Result<RemoteCommandEnd> e) { end = std::move(e); });
  ASSERT_TRUE(loop_.RunUntil([&] { return end.has_value(); }, kLimit));
  EXPECT_THAT(end->status().message(), HasSubstr("no command can be run on worker-1"));
}

TEST_F(RemoteShell, OutlivesGarbage) {
  for (const char* bytes : {"GET / HTTP/1.0\r\n\r\n", "\xff\x99garbage", ""})
    net::SendOnce(&loop_, "127.0.0.1", server_->port(), bytes, kLimit);
  const auto run = Start("exit 0");
  Finish(run.get());
  ASSERT_TRUE(run->end->ok()) << run->end->status().message();
  EXPECT_EQ((*run->end)->exit_code, 0);
}

}  // namespace
}  // namespace shoal::rendezvous
