#include "ps/bench/machine_ceilings_main.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

double Now() {
  return std::chrono::duration<double>(RealClock::Get()->Now().time_since_epoch()).count();
}

template <typename T>
T Value(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  fmt::print(stderr, "ps_speed: {}\n", result.status().ToString());
  std::exit(1);
}

struct Pair {
  UniqueFd one, other;
};

Pair Connected() {
  uint16_t port = 0;
  const UniqueFd listener = Value(ListenTcp("127.0.0.1", 0, &port));
  Pair pair;
  pair.one = Value(ConnectTcp("127.0.0.1:" + std::to_string(port), std::chrono::seconds(1)));
  pair.other = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  SetNoDelay(pair.other.get());
  // Calls wait, unless told not to.
  ::fcntl(pair.one.get(), F_SETFL, 0);
  return pair;
}

// Moves all `n` bytes with calls that wait (`flags` 0) or that are made again at once.
template <typename Call>
bool Whole(size_t n, const Call& call) {
  for (size_t done = 0; done < n;) {
    const ssize_t k = call(done);
    if (k > 0) done += static_cast<size_t>(k);
    if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR)) return false;
  }
  return true;
}

bool SendWhole(int fd, const char* from, size_t n, int flags) {
  return Whole(
      n, [&](size_t done) { return ::send(fd, from + done, n - done, flags | MSG_NOSIGNAL); });
}

bool ReceiveWhole(int fd, char* to, size_t n, int flags) {
  return Whole(n, [&](size_t done) { return ::recv(fd, to + done, n - done, flags); });
}

void ReadAndAdd(int fd) {
  constexpr size_t kFloats = 1 << 14;
  std::vector<float> in(kFloats), sum(kFloats);
  for (;;) {
    const ssize_t got = ::recv(fd, in.data(), kFloats * sizeof(float), 0);
    if (got <= 0) return;
    const size_t floats = static_cast<size_t>(got) / sizeof(float);
    for (size_t i = 0; i < floats; ++i) sum[i] += in[i];
  }
}

}  // namespace

double PlainTcp(size_t bytes, double seconds) {
  const Pair pair = Connected();
  std::thread reader(ReadAndAdd, pair.other.get());
  const std::vector<char> from(bytes);
  size_t sent = 0;
  const double begin = Now();
  while (Now() - begin < seconds && SendWhole(pair.one.get(), from.data(), bytes, 0)) sent += bytes;
  ::shutdown(pair.one.get(), SHUT_WR);
  reader.join();
  return static_cast<double>(sent) / (Now() - begin) / 1e9;
}

double PlainTcpRoundTrip(Duration pause) {
  const int turns = pause.count() > 0 ? 40 : 2000;
  const int flags = pause.count() > 0 ? 0 : MSG_DONTWAIT;
  constexpr size_t kAnswer = 64;
  const Pair pair = Connected();
  ::fcntl(pair.other.get(), F_SETFL, 0);
  std::thread other([&] {
    std::array<char, 4096> page{};
    for (int turn = 0; turn < turns; ++turn) {
      if (!ReceiveWhole(pair.other.get(), page.data(), page.size(), flags)) return;
      if (!SendWhole(pair.other.get(), page.data(), kAnswer, 0)) return;
    }
  });
  std::array<char, 4096> page{};
  std::vector<double> took;
  for (int turn = 0; turn < turns; ++turn) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const double begin = Now();
    if (!SendWhole(pair.one.get(), page.data(), page.size(), 0)) break;
    if (!ReceiveWhole(pair.one.get(), page.data(), kAnswer, MSG_DONTWAIT)) break;
    took.push_back(Now() - begin);
  }
  other.join();
  if (took.empty()) return 0;
  std::nth_element(took.begin(), took.begin() + took.size() / 2, took.end());
  return took[took.size() / 2] * 1e6;
}

}  // namespace shoal::ps
