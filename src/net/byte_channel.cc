#include "net/byte_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>
#include <vector>

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

class Plain final : public ByteChannel {
 public:
  explicit Plain(UniqueFd socket) : socket_(std::move(socket)) {}
  int fd() const override { return socket_.get(); }

  Step Read(char* to, size_t size) override {
    const ssize_t got = ::recv(fd(), to, size, 0);
    if (got > 0) return {.bytes = static_cast<size_t>(got)};
    if (got == 0) return {.end = true};
    if (errno == EAGAIN || errno == EINTR) return {.wait_for = POLLIN};
    return {.error = Unavailable(std::string("the connection broke: ") + std::strerror(errno))};
  }

  Step Write(std::string_view bytes) override {
    const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) return {.bytes = static_cast<size_t>(sent)};
    if (sent == 0 || errno == EAGAIN || errno == EINTR) return {.wait_for = POLLOUT};
    if (errno == EPIPE) return {.end = true};
    return {.error = Unavailable(std::string("the connection broke: ") + std::strerror(errno))};
  }

  void EndWriting() override { ::shutdown(fd(), SHUT_WR); }
  void Cancel() override { ::shutdown(fd(), SHUT_RDWR); }

 private:
  UniqueFd socket_;
};

// One direction of a pump: what was read and is not written yet.
struct Way {
  std::vector<char> block = std::vector<char>(64 << 10);
  size_t begin = 0;
  size_t end = 0;
  bool open = true;  // more may come
  bool empty() const { return begin == end; }
  std::string_view rest() const { return {block.data() + begin, end - begin}; }
};

// ByteChannel to socket. False if the socket takes no more.
bool StepDown(ByteChannel* channel, int socket, Way* way, short* wait_for) {
  *wait_for = 0;
  if (way->empty() && way->open) {
    const ByteChannel::Step step = channel->Read(way->block.data(), way->block.size());
    if (!step.error.ok()) return false;
    way->open = !step.end;
    way->begin = 0;
    way->end = step.bytes;
    *wait_for = step.wait_for;
    if (step.end) ::shutdown(socket, SHUT_WR);
  }
  while (!way->empty()) {
    const ssize_t sent =
        ::send(socket, way->block.data() + way->begin, way->end - way->begin, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (sent <= 0) return false;
    way->begin += static_cast<size_t>(sent);
  }
  return true;
}

// Socket to channel.
bool StepUp(ByteChannel* channel, int socket, Way* way, short* wait_for) {
  *wait_for = 0;
  if (way->empty() && way->open) {
    const ssize_t got = ::recv(socket, way->block.data(), way->block.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got < 0) return false;
    way->begin = 0;
    way->end = static_cast<size_t>(got);
    way->open = got > 0;
    if (got == 0) channel->EndWriting();
  }
  while (!way->empty()) {
    const ByteChannel::Step step = channel->Write(way->rest());
    if (!step.error.ok() || step.end) return false;
    way->begin += step.bytes;
    *wait_for = step.wait_for;
    if (step.wait_for != 0) return true;
  }
  return true;
}

thread_local int interrupt_fd = -1;

}  // namespace

std::unique_ptr<ByteChannel> PlainByteChannel(UniqueFd socket) {
  return std::make_unique<Plain>(std::move(socket));
}

WaitInterrupt::WaitInterrupt(int fd) : before_(std::exchange(interrupt_fd, fd)) {}
WaitInterrupt::~WaitInterrupt() { interrupt_fd = before_; }

Status AwaitFd(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now()).count();
    if (left <= 0) return DeadlineExceeded("no answer in time");
    pollfd polls[2] = {{fd, events, 0}, {interrupt_fd, POLLIN, 0}};  // -1 is passed over
    const int ready = ::poll(polls, 2, static_cast<int>(std::min<int64_t>(left, INT_MAX)));
    if (polls[1].revents != 0) return Cancelled("it was interrupted");
    if (ready > 0) return Status::Ok();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
  }
}

Status SendAll(ByteChannel* channel, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ByteChannel::Step step = channel->Write(bytes);
    TRY(step.error);
    if (step.end) return Status::Ok();
    bytes.remove_prefix(step.bytes);
    if (step.wait_for != 0) TRY(AwaitFd(channel->fd(), step.wait_for, deadline));
  }
  return Status::Ok();
}

Result<size_t> ReadSome(ByteChannel* channel, char* to, size_t size, Deadline deadline) {
  for (;;) {
    const ByteChannel::Step step = channel->Read(to, size);
    TRY(step.error);
    if (step.end) return size_t{0};
    if (step.bytes > 0) return step.bytes;
    TRY(AwaitFd(channel->fd(), step.wait_for, deadline));
  }
}

void RelayBytes(ByteChannel* channel, std::string_view early, int socket) {
  if (!early.empty() && !WriteAll(socket, early).ok()) return;
  const int flags = ::fcntl(socket, F_GETFL);
  ::fcntl(socket, F_SETFL, flags | O_NONBLOCK);
  Way down;
  Way up;
  for (;;) {
    short down_waits = 0;
    short up_waits = 0;
    if (!StepDown(channel, socket, &down, &down_waits)) return;
    if (!StepUp(channel, socket, &up, &up_waits)) return;
    if (!down.open && !up.open && down.empty() && up.empty()) return;
    if (!down.open && down.empty()) return;  // a relay without half-open connections ends both
    // Of the channel both directions may wait for either event (TLS); of the socket each for its
    // own.
    short on_channel = static_cast<short>(down_waits | up_waits);
    short on_socket = 0;
    if (!down.empty()) on_socket |= POLLOUT;
    if (up.empty() && up.open) on_socket |= POLLIN;
    if (down.empty() && down.open && down_waits == 0) continue;  // there may be more
    pollfd polls[2] = {{on_channel != 0 ? channel->fd() : -1, on_channel, 0},
                       {on_socket != 0 ? socket : -1, on_socket, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) return;
  }
}

}  // namespace shoal::net
