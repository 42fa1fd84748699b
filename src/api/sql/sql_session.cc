#include "api/sql/sql_session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/log.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxErrorLine = 1000;
// Questions have numbers apart from those of statements.
constexpr int64_t kFirstQuestion = int64_t{1} << 40;
constexpr size_t kMaxWaiting = 100;

void EmptyEvent(int fd) {
  uint64_t count = 0;
  (void)!::read(fd, &count, sizeof count);
}

}  // namespace

Result<std::unique_ptr<SqlSession>> SqlSession::Start(SqlSessionOptions options) {
  TRY_ASSIGN(engine::Child child, engine::StartChild({options.program, "sql-session", "--server"},
                                                     options.env, options.user));
  std::unique_ptr<SqlSession> session(new SqlSession(std::move(options)));
  session->wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  session->child_ = std::move(child);
  session->created_ = session->options_.clock->Wall();
  {
    const MutexLock lock(session->mu_);
    session->used_ = session->options_.clock->Now();
    session->outgoing_ = ToText(session->options_.begin) + "\n";
  }
  {
    const MutexLock lock(session->join_mu_);
    session->thread_ = std::thread([self = session.get()] { self->Work(); });
  }
  return session;
}

SqlSession::~SqlSession() { Finish(); }

void SqlSession::Finish() {
  End("the server ends");
  const MutexLock lock(join_mu_);
  if (thread_.joinable()) thread_.join();
}

void SqlSession::Wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void SqlSession::Send(const json::object& line) {
  {
    const MutexLock lock(mu_);
    if (ended_) return;
    outgoing_ += ToText(line) + "\n";
  }
  Wake();
}

Result<int64_t> SqlSession::Run(const SqlStatement& statement, const Principal& principal) {
  int64_t number = 0;
  {
    const MutexLock lock(mu_);
    if (ended_ || ending_) return FailedPrecondition("the session has ended: " + reason_);
    if (busy_)
      return FailedPrecondition(
          "statements of this session run; wait for their end, cancel them, or begin another "
          "session");
    busy_ = true;
    number = ++statements_;
    acts_as_ = principal;
  }
  Send({{"op", "run"},
        {"id", number},
        {"text", statement.text},
        {"name", "statement " + std::to_string(number)},
        {"rows", statement.rows},
        {"bytes", statement.bytes}});
  return number;
}

Status SqlSession::Ask(json::object question, std::function<void(Result<json::object>)> done) {
  {
    const MutexLock lock(mu_);
    if (ended_ || ending_) return FailedPrecondition("the session has ended: " + reason_);
    if (busy_) return FailedPrecondition("statements of this session run");
    if (waiting_.size() >= kMaxWaiting) return Unavailable("too many questions wait; try again");
    const int64_t number = kFirstQuestion + ++questions_;
    question["id"] = number;
    waiting_[number] = std::move(done);
    used_ = options_.clock->Now();
  }
  Send(question);
  return Status::Ok();
}

void SqlSession::Stop() { Send({{"op", "stop"}}); }

void SqlSession::End(const std::string& reason) {
  {
    const MutexLock lock(mu_);
    if (reason_.empty()) reason_ = reason;
  }
  ending_ = true;
  Wake();
}

void SqlSession::Answer(const json::object& answer) { Send(answer); }

void SqlSession::Publish(json::object event) {
  {
    const MutexLock lock(mu_);
    if (ended_) return;
    event["id"] = statements_;
    events_.Add(std::move(event));
  }
  options_.on_event();
}

SqlEvents SqlSession::Read(int64_t after, size_t limit) const {
  const MutexLock lock(mu_);
  SqlEvents read = events_.Read(after, limit);
  read.ended = ended_ && !events_.HasAfter(read.next);
  return read;
}

SqlSessionInfo SqlSession::info() const {
  const MutexLock lock(mu_);
  return {ended_ || ending_ ? "ended" : busy_ ? "busy" : "idle", reason_, statements_, created_};
}

Principal SqlSession::principal() const {
  const MutexLock lock(mu_);
  return acts_as_ ? *acts_as_ : options_.principal;
}

std::optional<TimePoint> SqlSession::idle_since() const {
  const MutexLock lock(mu_);
  if (busy_) return std::nullopt;
  return used_;
}

// ---- The session's thread
// -------------------------------------------------------------------------

void SqlSession::Write() {
  const MutexLock lock(mu_);
  while (!outgoing_.empty() && child_.in.valid()) {
    const ssize_t put = ::write(child_.in.get(), outgoing_.data(), outgoing_.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EAGAIN) child_.in.Reset();  // it has gone, which its end tells
    if (put < 0) return;
    outgoing_.erase(0, static_cast<size_t>(put));
  }
}

bool SqlSession::ReadLines(int fd, std::string* buffer,
                           const std::function<void(const std::string&)>& use) {
  char piece[64 << 10];
  for (;;) {
    const ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    size_t searched = buffer->size();
    buffer->append(piece, static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end = buffer->find('\n', searched); end != std::string::npos;
         end = buffer->find('\n', begin)) {
      use(buffer->substr(begin, end - begin));
      begin = end + 1;
    }
    buffer->erase(0, begin);
    if (buffer->size() <= kMaxLine) continue;
    End("its process answers too much");
    return false;
  }
}

void SqlSession::FinishAnswer(const json::object& event) {
  std::function<void(Result<json::object>)> done;
  {
    const MutexLock lock(mu_);
    const auto found = waiting_.find(GetIntOr(event, "id", 0));
    if (found == waiting_.end()) return;
    done = std::move(found->second);
    waiting_.erase(found);
  }
  done(event);
}

void SqlSession::OnLine(const std::string& line) {
  Result<json::object> event = ParseJsonObject(line);
  if (!event.ok()) return End("its process answers with something else than JSON");
  const std::string kind = GetStringOr(*event, "event", "");
  if (kind == "completion" || kind == "inspection") return FinishAnswer(*event);
  if (kind == "ask") return options_.on_ask(*event);
  if (kind != "rows" && kind != "note" && kind != "finished") return;
  {
    const MutexLock lock(mu_);
    (*event)["id"] = statements_;
    if (kind == "finished") {
      busy_ = false;
      used_ = options_.clock->Now();
    }
    events_.Add(std::move(*event));
  }
  options_.on_event();
}

void SqlSession::Work() {
  std::string out, err;
  bool open = true;
  while (open && !ending_) {
    bool writes = false;
    {
      const MutexLock lock(mu_);
      writes = !outgoing_.empty() && child_.in.valid();
    }
    pollfd fds[] = {{child_.out.get(), POLLIN, 0},
                    {child_.err.get(), POLLIN, 0},
                    {child_.pidfd.get(), POLLIN, 0},
                    {wake_.get(), POLLIN, 0},
                    {writes ? child_.in.get() : -1, POLLOUT, 0}};
    if (::poll(fds, 5, -1) < 0 && errno != EINTR) break;
    if (fds[3].revents != 0) EmptyEvent(wake_.get());
    Write();
    open = ReadLines(child_.out.get(), &out, [this](const std::string& line) { OnLine(line); });
    ReadLines(child_.err.get(), &err,
              [this](const std::string& line) { last_error_ = line.substr(0, kMaxErrorLine); });
    open = open && fds[2].revents == 0;
  }
  ::kill(-child_.pid, SIGKILL);  // its children too
  ::kill(child_.pid, SIGKILL);
  pollfd gone{child_.pidfd.get(), POLLIN, 0};
  while (::poll(&gone, 1, -1) < 0 && errno == EINTR) {
  }
  Close(engine::ReapChild(child_));
}

void SqlSession::Close(int wait_status) {
  std::map<int64_t, std::function<void(Result<json::object>)>> waiting;
  std::string reason;
  {
    const MutexLock lock(mu_);
    if (reason_.empty()) {
      reason_ = "its process ended" + (last_error_.empty() ? "" : ": " + last_error_);
      LogWarning("the process of the SQL session {} ended with the status {}: {}", options_.id,
                 wait_status, last_error_);
    }
    reason = reason_;
    waiting.swap(waiting_);
    if (std::exchange(busy_, false))
      events_.Add({{"event", "finished"},
                   {"id", statements_},
                   {"ok", false},
                   {"code", CodeName(Code::kAborted)},
                   {"error", "the session has ended: " + reason}});
    events_.Add({{"event", "ended"}, {"id", statements_}, {"reason", reason}});
    ended_ = true;
    outgoing_.clear();
  }
  for (const auto& [number, done] : waiting) done(Aborted("the session has ended: " + reason));
  options_.on_event();
  options_.on_end();
}

}  // namespace shoal::api
