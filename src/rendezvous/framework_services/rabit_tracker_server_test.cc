// Rabit's tracker over real sockets.
#include "rendezvous/framework_services/rabit_tracker_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "rendezvous/framework_services/rabit_worker.h"

namespace shoal::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(20);

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket of the test's own.
class Socket {
 public:
  explicit Socket(int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) : fd_(fd) {}
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void Connect(uint16_t port) const {
    const sockaddr_in to = Loopback(port);
    ASSERT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  uint16_t Listen() const {
    sockaddr_in at = Loopback(0);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    return ntohs(at.sin_port);
  }
  bool Readable() const {
    pollfd watched{fd_, POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }
  void Write(const std::string& bytes) const {
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Received bytes; "" at the end of the connection.
  std::string Read() const {
    std::string bytes(4096, '\0');
    const ssize_t size = ::recv(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return bytes;
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

struct TrackerTest : ::testing::Test {
  void Start(int workers) {
    RabitTrackerOptions options;
    options.workers = workers;
    auto started = RabitTrackerServer::Start(
        &loop, options, [this](const std::string& line) { lines.push_back(line); });
    ASSERT_TRUE(started.ok()) << started.status().message();
    server = std::move(started).value();
  }
  // Everything up to a text that ends with `end`.
  std::string ReadUntil(const Socket& socket, const std::string& end) {
    std::string all;
    EXPECT_TRUE(loop.RunUntil(
        [&] {
          if (socket.Readable()) all += socket.Read();
          return all.ends_with(end);
        },
        kLimit))
        << "got " << all;
    return all;
  }

  net::Loop loop;
  std::vector<std::string> lines;
  std::unique_ptr<RabitTrackerServer> server;
};

std::string Said(const std::string& command) {
  return RabitInt(kRabitMagic) + RabitText(R"({"world_size":-1,"rank":-1,"task_id":""})") +
         RabitText(command);
}

TEST_F(TrackerTest, AGroupFormsAndHearsOfAFailure) {
  Start(2);
  const Socket alarm, one, two, failed;
  const std::string start =
      Said(R"({"cmd":1,"port":4000,"error_port":)" + std::to_string(alarm.Listen()) + "}");
  one.Connect(server->port());
  two.Connect(server->port());
  one.Write(start);
  two.Write(start);
  EXPECT_EQ(ReadUntil(one, R"("host":"127.0.0.1","port":4000})").substr(0, 4),
            RabitInt(kRabitMagic));
  ReadUntil(two, R"("host":"127.0.0.1","port":4000})");
  failed.Connect(server->port());
  failed.Write(Said(R"({"cmd":3,"msg":"no memory","code":1})"));
  ASSERT_TRUE(loop.RunUntil([&] { return alarm.Readable(); }, kLimit));
  const Socket heard(::accept(alarm.fd(), nullptr, nullptr));
  EXPECT_EQ(ReadUntil(heard, RabitInt(-1)), RabitInt(-1));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("no memory")));
}

TEST_F(TrackerTest, WhoIsNoWorkerIsToldOffAndClosed) {
  Start(1);
  const Socket stranger;
  stranger.Connect(server->port());
  stranger.Write("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(loop.RunUntil([&] { return stranger.Readable(); }, kLimit));
  EXPECT_EQ(stranger.Read(), "");
  EXPECT_THAT(lines, ElementsAre("refused 127.0.0.1: it is not a worker of rabit or XGBoost"));
}

TEST_F(TrackerTest, SaysWhatIsWrongWithItsOptions) {
  Start(1);
  RabitTrackerOptions options;
  const auto start = [&] {
    return RabitTrackerServer::Start(&loop, options, {}).status().message();
  };
  EXPECT_EQ(start(), "got 0 workers, expected 1 … 100000");
  options.workers = 1;
  options.port = server->port();
  EXPECT_THAT(start(), HasSubstr("cannot listen at 127.0.0.1:"));
  options.host = "elsewhere";
  EXPECT_EQ(start(), "'elsewhere' is no numeric address");
}

}  // namespace
}  // namespace shoal::rendezvous
