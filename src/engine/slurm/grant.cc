#include "engine/slurm/grant.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace shoal::engine::slurm {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kLongestLine = 1 << 20;  // lists of nodes that have no common part

std::string_view NextWord(std::string_view* rest) {
  const size_t end = std::min(rest->find(' '), rest->size());
  const std::string_view word = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return word;
}

bool ToNumber(std::string_view word, int64_t* value) {
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && rest == word.data() + word.size() && *value > 0;
}

}  // namespace

Result<Grant> ParseGrant(std::string_view line) {
  std::string_view rest = line;
  Grant grant;
  const bool numbers =
      ToNumber(NextWord(&rest), &grant.number) && ToNumber(NextWord(&rest), &grant.salloc);
  grant.nodes = NextWord(&rest);
  grant.tasks_per_node = NextWord(&rest);
  grant.submit_host = NextWord(&rest);
  if (!numbers || grant.nodes.empty() || grant.tasks_per_node.empty() || !rest.empty())
    return InvalidArgument("salloc's allocation: got \"" + std::string(line.substr(0, 200)) +
                           "\", expected a number, a process, nodes and tasks per node");
  return grant;
}

Result<Grant> AwaitGrant(int fd, std::chrono::milliseconds patience) {
  const auto deadline = SteadyClock::now() + patience;
  std::string text;
  char block[4096];
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    pollfd readable{fd, POLLIN, 0};
    if (left.count() <= 0 || text.size() > kLongestLine)
      return Unavailable("salloc has said nothing of an allocation");
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Unavailable("salloc has ended without an allocation");
    text.append(block, static_cast<size_t>(got));
    if (const size_t end = text.find('\n'); end != std::string::npos)
      return ParseGrant(std::string_view(text).substr(0, end));
  }
}

}  // namespace shoal::engine::slurm
