// Readiness checks against sockets of the test, serving and not serving.
#include "rendezvous/launcher/ready_check.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"

namespace shoal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Listens, or only holds the port; gives every client the same answer.
class Server {
 public:
  explicit Server(net::Loop* loop, std::string answer = {})
      : loop_(loop), answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    fd_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Server() { loop_->Cancel(watch_); }
  void Listen() {
    ASSERT_EQ(::listen(fd_.get(), 8), 0);
    auto watch = loop_->WatchReadable(fd_.get(), [this] { Take(); });
    ASSERT_TRUE(watch.ok());
    watch_ = *watch;
  }
  void Take() {
    UniqueFd taken(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!answer_.empty()) {
      EXPECT_TRUE(WriteAll(taken.get(), answer_).ok());
      ::shutdown(taken.get(), SHUT_WR);
    }
    kept_.push_back(std::move(taken));
  }
  void Answer(std::string answer) { answer_ = std::move(answer); }
  uint16_t port() const { return port_; }
  size_t taken() const { return kept_.size(); }

 private:
  net::Loop* const loop_;
  std::string answer_;
  UniqueFd fd_;
  uint16_t port_ = 0;
  net::Loop::Id watch_ = 0;
  std::vector<UniqueFd> kept_;
};

class ReadyCheckTest : public testing::Test {
 protected:
  void Start(job::Ready how, uint16_t port = 0) {
    ReadyCheckSpec spec;
    spec.how = std::move(how);
    spec.hosts = {"::1", "127.0.0.1"};
    spec.port = port;
    spec.env = {"PATH=/usr/bin:/bin"};
    spec.job_id = "ready-check-test";
    spec.name = "command";
    spec.isolation.tree = host::TreeMode::kGuard;
    check_ = ReadyCheck::Start(
        &loop_, std::move(spec),
        [this] {
          check_.reset();
          ready_ = true;
        },
        [this](const std::string& why) {
          check_.reset();
          why_ = why;
        });
  }
  bool Until(const std::function<bool()>& done) { return loop_.RunUntil(done, seconds(20)); }
  static job::Ready How(job::ReadyBy by, milliseconds timeout = seconds(20)) {
    job::Ready how;
    how.by = by;
    how.every = milliseconds(10);
    how.timeout = timeout;
    return how;
  }

  net::Loop loop_;
  std::unique_ptr<ReadyCheck> check_;
  bool ready_ = false;
  std::string why_;
};

TEST_F(ReadyCheckTest, TcpWhenSomebodyListensNotWhenThePortIsOnlyBound) {
  Server server(&loop_);
  Start(How(job::ReadyBy::kTcp), server.port());
  EXPECT_FALSE(loop_.RunUntil([this] { return ready_; }, milliseconds(60)));
  server.Listen();
  EXPECT_TRUE(Until([this] { return ready_; }));
}

TEST_F(ReadyCheckTest, HttpByItsStatus) {
  Server server(&loop_, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
  server.Listen();
  Start(How(job::ReadyBy::kHttp), server.port());
  EXPECT_TRUE(Until([&] { return server.taken() >= 3; }));
  EXPECT_FALSE(ready_);
  server.Answer("HTTP/1.0 204 No Content\r\n\r\n");
  EXPECT_TRUE(Until([this] { return ready_; }));
}

TEST_F(ReadyCheckTest, TimeoutsSayWhatTheLastTryMet) {
  Server server(&loop_, "HTTP/1.1 404 Not Found\r\n\r\n");
  Start(How(job::ReadyBy::kTcp, milliseconds(50)), server.port());
  EXPECT_TRUE(Until([this] { return !why_.empty(); }));
  EXPECT_EQ(why_, "nothing takes connections at port " + std::to_string(server.port()));
  why_.clear();
  server.Listen();
  Start(How(job::ReadyBy::kHttp, milliseconds(200)), server.port());
  EXPECT_TRUE(Until([this] { return !why_.empty(); }));
  EXPECT_EQ(why_, "GET / was answered with 404");
  why_.clear();
  server.Answer("220 mail.example.org ESMTP\r\n");
  Start(How(job::ReadyBy::kHttp, milliseconds(200)), server.port());
  EXPECT_TRUE(Until([this] { return !why_.empty(); }));
  EXPECT_THAT(why_, HasSubstr("is not HTTP"));
}

TEST_F(ReadyCheckTest, ACommandThatSucceedsInTheEnd) {
  const auto dir = TempDir::Create();
  job::Ready how = How(job::ReadyBy::kCommand);
  how.command = {"test", "-e", (dir->path() / "up").string()};
  Start(how);
  EXPECT_FALSE(loop_.RunUntil([this] { return ready_; }, milliseconds(100)));
  ASSERT_TRUE(WriteFileAtomically(dir->path() / "up", "", 0600, false).ok());
  EXPECT_TRUE(Until([this] { return ready_; }));
  how.command = {"sh", "-c", "exit 3"};
  how.timeout = milliseconds(100);
  Start(how);
  EXPECT_TRUE(Until([this] { return !why_.empty(); }));
  EXPECT_EQ(why_, "its `ready` command exits with 3");
}

}  // namespace
}  // namespace shoal::rendezvous
