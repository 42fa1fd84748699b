#include "bindings/ps_lite/acceptor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <vector>

#include "base/log.h"
#include "ps/transport/socket.h"

namespace shoal::bindings {
namespace {

constexpr int kWithoutDescriptors = 100;  // milliseconds until the next try
constexpr uint64_t kToldEach = 8;         // refusals; later ones at powers of two

}  // namespace

Result<std::unique_ptr<Acceptor>> Acceptor::Start(UniqueFd listener, std::string token,
                                                  Accepted accepted) {
  std::unique_ptr<Acceptor> acceptor(
      new Acceptor(std::move(listener), std::move(token), std::move(accepted)));
  if (!acceptor->stop_.valid()) return ErrnoStatus(errno, "eventfd");
  acceptor->thread_ = std::thread([raw = acceptor.get()] { raw->Run(); });
  return acceptor;
}

Acceptor::Acceptor(UniqueFd listener, std::string token, Accepted accepted)
    : listener_(std::move(listener)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      token_(std::move(token)),
      accepted_(std::move(accepted)) {}

Acceptor::~Acceptor() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
  ::shutdown(listener_.get(), SHUT_RDWR);  // also for copies in forked children
}

int Acceptor::WaitMilliseconds() const {
  int64_t wait = out_of_descriptors_ ? kWithoutDescriptors : -1;
  if (!unproven_.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        unproven_.front().until - RealClock::Get()->Now());
    const int64_t first = std::max<int64_t>(0, left.count() + 1);
    wait = wait < 0 ? first : std::min(wait, first);
  }
  return static_cast<int>(wait);
}

void Acceptor::Run() {
  std::vector<pollfd> polled;
  for (;;) {
    polled.clear();
    polled.push_back({stop_.get(), POLLIN, 0});
    polled.push_back({out_of_descriptors_ ? -1 : listener_.get(), POLLIN, 0});
    for (const Unproven& one : unproven_) polled.push_back({one.fd.get(), POLLIN, 0});
    const int ready = ::poll(polled.data(), polled.size(), WaitMilliseconds());
    if (ready < 0 && errno != EINTR) return LogError("accepting nodes: poll: errno {}", errno);
    if (polled[0].revents != 0) return;
    out_of_descriptors_ = false;
    const TimePoint now = RealClock::Get()->Now();
    size_t at = 2;
    for (auto one = unproven_.begin(); one != unproven_.end(); ++at) {
      bool keep = ready <= 0 || polled[at].revents == 0 || Receive(&*one);
      if (keep && one->until <= now) {
        Refuse(*one, DeadlineExceeded("it did not prove the job's token in time"));
        keep = false;
      }
      one = keep ? std::next(one) : unproven_.erase(one);
    }
    if (ready > 0 && polled[1].revents != 0) AcceptOne();
  }
}

void Acceptor::AcceptOne() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    // Of the process or the machine: what waits longest gives its own away.
    const bool lacking = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    out_of_descriptors_ = lacking && unproven_.empty();
    if (lacking && !unproven_.empty()) unproven_.pop_front();
    return;
  }
  if (unproven_.size() == kMaxUnproven) {
    Refuse(unproven_.front(),
           ResourceExhausted("too many connections without a proof of the token"));
    unproven_.pop_front();
  }
  Unproven& one = unproven_.emplace_back();
  one.name = ps::PeerName(fd.get());
  one.fd = std::move(fd);
  one.until = RealClock::Get()->Now() + kProofTimeout;
  // A new socket has room for it.
  (void)ps::SendSome(one.fd.get(), one.proof.nonce().data(), one.proof.nonce().size());
}

bool Acceptor::Receive(Unproven* from) {
  char bytes[ListenerProof::kBytes];
  const long got =
      ps::ReceiveSome(from->fd.get(), bytes, ListenerProof::kBytes - from->received.size());
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
  if (got <= 0) {
    Refuse(*from, Unavailable("it disconnected before it proved the job's token"));
    return false;
  }
  from->received.append(bytes, static_cast<size_t>(got));
  if (from->received.size() < ListenerProof::kBytes) return true;
  const auto answer = from->proof.Check(from->received, token_);
  if (!answer.ok()) {
    Refuse(*from, answer.status());
    return false;
  }
  const long sent = ps::SendSome(from->fd.get(), answer->data(), answer->size());
  if (sent == static_cast<long>(answer->size()))
    accepted_(Connection::FromProven(std::move(from->fd), std::move(from->name)));
  return false;
}

// Unauthenticated connections must not fill the log.
void Acceptor::Refuse(const Unproven& refused, const Status& why) {
  ++refused_;
  if (refused_ <= kToldEach || std::has_single_bit(refused_))
    LogWarning("refused {}: {} ({} refused so far)", refused.name, why.message(), refused_);
}

}  // namespace shoal::bindings
