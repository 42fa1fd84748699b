#include "engine/stream_pump.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/file.h"

namespace shoal::engine {
namespace {

// False at the end of the stream, or when nobody takes it any more.
bool Pass(int from, int to, std::vector<char>* block) {
  const ssize_t got = ::read(from, block->data(), block->size());
  if (got < 0 && errno == EINTR) return true;
  return got > 0 && WriteAll(to, {block->data(), static_cast<size_t>(got)}).ok();
}

}  // namespace

void PumpStreams(int a, int b) {
  std::vector<char> block(64 << 10);
  int from[2] = {a, b};  // -1: has ended
  while (from[0] >= 0 || from[1] >= 0) {
    pollfd polls[2] = {{from[0], POLLIN, 0}, {from[1], POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i) {
      const int to = i == 0 ? b : a;
      if (polls[i].revents == 0 || Pass(from[i], to, &block)) continue;
      ::shutdown(to, SHUT_WR);
      from[i] = -1;
    }
  }
}

}  // namespace shoal::engine
