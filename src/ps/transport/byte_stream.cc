#include "ps/transport/byte_stream.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ps/transport/local_socket.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

constexpr size_t kUsualBuffer = 1u << 20;
// Bytes that were consumed are given back to the ring's writer in steps of this size.
constexpr size_t kRingStep = 32u << 10;

bool TakesNone(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

class SocketStream final : public ByteStream {
 public:
  SocketStream(int fd, ByteBuffer received) : ByteStream(false, false, -1), fd_(fd) {
    in_.Swap(received);
  }

  Status Receive(size_t most, size_t* got) override {
    *got = 0;
    char* const to = in_.Reserve(most);
    const long received = ReceiveSome(fd_, to, most);
    if (received < 0 && TakesNone(errno)) return Status::Ok();
    if (received < 0) {
      return Unavailable(fmt::format("the connection broke: {}", std::strerror(errno)));
    }
    ended_ = received == 0;
    *got = static_cast<size_t>(received);
    in_.Commit(*got);
    return Status::Ok();
  }

  Status Send(std::span<const iovec> pieces, size_t* taken) override {
    *taken = 0;
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    for (;;) {
      const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && TakesNone(errno)) return Status::Ok();
      if (sent < 0) return Unavailable("the other end no longer reads");
      *taken = static_cast<size_t>(sent);
      return Status::Ok();
    }
  }

 private:
  const int fd_;
};

class RingStream final : public ByteStream {
 public:
  RingStream(int fd, SharedRings rings, SharedRings::Direction receives)
      : ByteStream(true, true, -1),
        fd_(fd),
        from_client_(receives == SharedRings::kToServer),
        rings_(std::move(rings)),
        reader_(rings_, receives),
        writer_(rings_, from_client_ ? SharedRings::kToClient : SharedRings::kToServer) {}

  Status Receive(size_t /*most*/, size_t* got) override {
    *got = 0;
    const size_t before = reader_.view().size();
    if (!reader_.CheckForData()) return Status::Ok();
    if (reader_.broken()) return Broken();
    *got = reader_.view().size() - before;
    if (gathering_) Gather();
    return Status::Ok();
  }
  std::string_view view() const override { return gathering_ ? in_.view() : reader_.view(); }
  std::string_view Expect(size_t whole) override {
    if (!gathering_ && whole <= kRingFrame) return reader_.view();
    // The header is read again from the gathered bytes, and may by then say another length.
    gathering_ = true;
    expected_ = whole;
    if (in_.size() < whole) in_.Reserve(whole - in_.size());
    Gather();
    return in_.view();
  }
  bool Consume(size_t n) override {
    if (!gathering_) return ConsumeRing(n);
    gathering_ = false;
    ByteStream::Consume(in_.size());
    return unreleased_ >= kRingStep;
  }
  void Release() override {
    unreleased_ = 0;
    if (reader_.Release()) WakeOtherEnd(fd_);
  }
  SleepResult Sleep(bool /*deaf*/) override {
    return reader_.Sleep() ? SleepResult::kAsleep : SleepResult::kDataPending;
  }
  void Awake() override { reader_.ClearSleeping(); }

  Status Send(std::span<const iovec> pieces, size_t* taken) override {
    *taken = 0;
    for (const iovec& piece : pieces) {
      const size_t copied = SendPiece(static_cast<const char*>(piece.iov_base), piece.iov_len);
      *taken += copied;
      if (copied < piece.iov_len) break;
    }
    return writer_.broken() ? Broken() : Status::Ok();
  }
  bool HasRoom(size_t size) override { return writer_.Room(size) >= size; }
  char* Place(size_t size) override { return writer_.Room(size) >= size ? writer_.At() : nullptr; }
  void Commit(size_t size) override { writer_.Advance(size); }
  Status Publish() override {
    if (writer_.Publish()) WakeOtherEnd(fd_);
    return writer_.broken() ? Broken() : Status::Ok();
  }
  bool AwaitRoom() override { return writer_.AwaitRoom(); }

 private:
  // Also ends the connection where it is received, perhaps by another thread.
  Status Broken() {
    ::shutdown(fd_, SHUT_RDWR);
    return DataLoss(
        fmt::format("the {} broke the shared memory", from_client_ ? "client" : "server"));
  }

  bool ConsumeRing(size_t n) {
    reader_.Consume(n);
    unreleased_ += n;
    return unreleased_ >= kRingStep;
  }

  // Moves what there is of the long frame out of the ring.
  void Gather() {
    if (in_.size() >= expected_) return;
    const std::string_view have = reader_.view();
    const size_t step = std::min(expected_ - in_.size(), have.size());
    in_.Append(have.data(), step);
    ConsumeRing(step);
  }

  size_t SendPiece(const char* from, size_t size) {
    size_t sent = 0;
    while (sent < size) {
      const size_t left = size - sent;
      const size_t step = std::min(left, writer_.Room(std::min(left, kRingFrame)));
      if (step == 0) break;
      std::memcpy(writer_.At(), from + sent, step);
      writer_.Advance(step);
      sent += step;
      if (writer_.Publish()) WakeOtherEnd(fd_);
    }
    return sent;
  }

  const int fd_;
  const bool from_client_;
  const SharedRings rings_;
  RingReader reader_;
  RingWriter writer_;
  size_t unreleased_ = 0;  // bytes consumed since the last Release
  size_t expected_ = 0;    // bytes of the frame that is gathered
};

class UcxStream final : public ByteStream {
 public:
  explicit UcxStream(std::unique_ptr<UcxPipe> pipe)
      : ByteStream(false, true, pipe->event_fd()), pipe_(std::move(pipe)) {}

  Status Receive(size_t most, size_t* got) override {
    *got = pipe_->Receive(in_.Reserve(most), most);
    in_.Commit(*got);
    return pipe_->status();
  }
  SleepResult Sleep(bool deaf) override {
    switch (pipe_->Sleep(deaf)) {
      case UcxSleep::kAsleep:
        return SleepResult::kAsleep;
      case UcxSleep::kSending:
        return SleepResult::kSending;
      case UcxSleep::kDataPending:
        break;
    }
    return SleepResult::kDataPending;
  }
  Status Send(std::span<const iovec> pieces, size_t* taken) override {
    *taken = pipe_->Send(pieces);
    return Status::Ok();
  }

 private:
  const std::unique_ptr<UcxPipe> pipe_;
};

}  // namespace

std::string_view ByteStream::Expect(size_t whole) {
  if (in_.size() < whole) in_.Reserve(whole - in_.size());
  return in_.view();
}

bool ByteStream::Consume(size_t n) {
  in_.Consume(n);
  in_.ShrinkTo(kUsualBuffer);
  return false;
}

std::unique_ptr<ByteStream> MakeSocketStream(int fd, ByteBuffer received) {
  return std::make_unique<SocketStream>(fd, std::move(received));
}

std::unique_ptr<ByteStream> MakeRingStream(int fd, SharedRings rings,
                                           SharedRings::Direction receives) {
  return std::make_unique<RingStream>(fd, std::move(rings), receives);
}

std::unique_ptr<ByteStream> MakeUcxStream(std::unique_ptr<UcxPipe> pipe) {
  return std::make_unique<UcxStream>(std::move(pipe));
}

}  // namespace shoal::ps
