// Answers are sent in the order in which they were queued, in the stream's memory or through it.
#include "ps/server/answer_queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace shoal::ps {
namespace {

// A stream that takes at most `room` bytes, and has places for what fits.
class FakeStream final : public ByteStream {
 public:
  explicit FakeStream(bool places) : ByteStream(false, false, -1), places_(places) {}

  Status Receive(size_t /*most*/, size_t* got) override {
    *got = 0;
    return Status::Ok();
  }
  Status Send(std::span<const iovec> pieces, size_t* taken) override {
    if (broken) return Unavailable("broken");
    *taken = std::min(room, pieces[0].iov_len);
    sent.append(static_cast<const char*>(pieces[0].iov_base), *taken);
    room -= *taken;
    return Status::Ok();
  }
  char* Place(size_t size) override {
    if (!places_ || size > room) return nullptr;
    place_.resize(size);
    return place_.data();
  }
  void Commit(size_t size) override {
    sent.append(place_.data(), size);
    room -= size;
  }

  size_t room = 1 << 20;
  bool broken = false;
  std::string sent;

 private:
  const bool places_;
  std::string place_;
};

void Answer(AnswerQueue* queue, ByteStream* stream, const std::string& bytes, bool in_place) {
  std::memcpy(queue->Begin(bytes.size(), stream), bytes.data(), bytes.size());
  EXPECT_EQ(queue->End(bytes.size(), stream), in_place);
}

std::string FrameOf(FrameType type, const std::string& body) {
  FrameHeader head;
  head.type = type;
  head.id = 7;
  std::string frame;
  AppendControlFrame(head, body, &frame);
  return frame;
}

TEST(AnswerQueue, AnswersAreInPlaceUnlessOneIsQueuedBeforeThem) {
  FakeStream stream(true);
  AnswerQueue queue;
  size_t taken = 0;
  Answer(&queue, &stream, "one ", true);
  queue.Append(FrameType::kReply, 7, "body");
  const std::string control = FrameOf(FrameType::kReply, "body");
  Answer(&queue, &stream, "two ", false);
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.waiting(), control.size() + 4);
  ASSERT_TRUE(queue.Send(&stream, &taken).ok());
  EXPECT_EQ(taken, control.size() + 4);
  Answer(&queue, &stream, "three", true);
  EXPECT_EQ(stream.sent, "one " + control + "two three");
  EXPECT_TRUE(queue.empty());
}

TEST(AnswerQueue, IsFinishedOnceItIsShutAndAllIsSent) {
  FakeStream stream(false);
  AnswerQueue queue;
  size_t taken = 0;
  Answer(&queue, &stream, "answer", false);
  queue.Append(FrameType::kError, 7, "why");
  queue.Shut();
  stream.room = 10;
  ASSERT_TRUE(queue.Send(&stream, &taken).ok());
  EXPECT_EQ(taken, 10u);
  EXPECT_TRUE(queue.blocked());
  queue.Measure();
  const std::string all = "answer" + FrameOf(FrameType::kError, "why");
  EXPECT_EQ(queue.unsent(), all.size() - 10);
  EXPECT_FALSE(queue.Finished());
  stream.room = 1000;
  ASSERT_TRUE(queue.Send(&stream, &taken).ok());
  EXPECT_FALSE(queue.blocked());
  queue.Measure();
  EXPECT_EQ(queue.unsent(), 0u);
  EXPECT_TRUE(queue.Finished());
  EXPECT_EQ(stream.sent, all);
}

TEST(AnswerQueue, TellsThatTheStreamIsBroken) {
  FakeStream stream(false);
  AnswerQueue queue;
  size_t taken = 0;
  Answer(&queue, &stream, "answer", false);
  stream.broken = true;
  EXPECT_EQ(queue.Send(&stream, &taken).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace shoal::ps
