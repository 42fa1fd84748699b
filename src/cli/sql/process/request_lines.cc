#include "cli/sql/process/request_lines.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

constexpr size_t kMaxWaiting = 1000;  // requests that are not begun

}  // namespace

RequestLines::RequestLines(std::function<void()> on_stop, std::function<void()> on_end)
    : on_stop_(std::move(on_stop)), on_end_(std::move(on_end)) {}

void RequestLines::Start() {
  std::thread([this] { Read(); }).detach();
}

void RequestLines::Read() {
  constexpr size_t kPiece = size_t{64} << 10;
  std::string buffer;
  std::string piece(kPiece, '\0');
  bool good = true;
  while (good) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const size_t searched = buffer.size();
    buffer.append(piece, 0, static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end = buffer.find('\n', searched); good && end != std::string::npos;
         end = buffer.find('\n', begin)) {
      good = Take(buffer.substr(begin, end - begin));
      begin = end + 1;
    }
    buffer.erase(0, begin);
    if (buffer.size() > sql::kMaxRequestLine) {
      PrintNote("a line of the input is too long");
      good = false;
    }
  }
  {
    const MutexLock lock(mu_);
    ended_ = true;
  }
  come_.notify_all();
  on_end_();
}

bool RequestLines::Take(const std::string& line) {
  Result<sql::SessionRequest> request = sql::ParseSessionRequest(line);
  if (!request.ok()) {
    PrintError(request.status());
    return false;
  }
  if (request->kind == sql::SessionRequest::Kind::kStop) {
    on_stop_();
    return true;
  }
  {
    const MutexLock lock(mu_);
    auto& queue = request->kind == sql::SessionRequest::Kind::kAnswer ? answers_ : requests_;
    if (queue.size() >= kMaxWaiting) return false;
    queue.push_back(std::move(*request));
  }
  come_.notify_all();
  return true;
}

std::optional<sql::SessionRequest> RequestLines::Pop(bool answer) {
  MutexLock lock(mu_);
  auto& queue = answer ? answers_ : requests_;
  while (queue.empty() && !ended_) come_.wait(lock);
  if (ended_) return std::nullopt;  // the rest has no reader
  sql::SessionRequest request = std::move(queue.front());
  queue.pop_front();
  return request;
}

std::optional<sql::SessionRequest> RequestLines::Next() { return Pop(false); }
std::optional<sql::SessionRequest> RequestLines::NextAnswer() { return Pop(true); }

}  // namespace shoal::cli
