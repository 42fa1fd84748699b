#include "engine/exec/stream_pump.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/file.h"

namespace shoal::engine {
namespace {

// False at the end of the stream, or if the receiver has closed.
bool Pass(int from, int to, std::vector<char>* block) {
  const ssize_t got = ::read(from, block->data(), block->size());
  if (got < 0 && errno == EINTR) return true;
  return got > 0 && WriteAll(to, {block->data(), static_cast<size_t>(got)}).ok();
}

// Copies two streams, each from its source to its destination.
void Pump(const int (&from)[2], const int (&to)[2]) {
  std::vector<char> block(64 << 10);
  bool open[2] = {true, true};
  while (open[0] || open[1]) {
    pollfd polls[2] = {{open[0] ? from[0] : -1, POLLIN, 0}, {open[1] ? from[1] : -1, POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i) {
      if (polls[i].revents == 0 || Pass(from[i], to[i], &block)) continue;
      if (::shutdown(to[i], SHUT_WR) != 0 && errno == ENOTSOCK) ::close(to[i]);
      open[i] = false;
    }
  }
}

}  // namespace

void PumpStreams(int a, int b) { Pump({a, b}, {b, a}); }

void PumpThrough(int socket, int in, int out) { Pump({in, socket}, {socket, out}); }

}  // namespace shoal::engine
