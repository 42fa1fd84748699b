// Publishing to controllers that do not read, or read slowly.

#include "rendezvous/coordinator/event_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace shoal::rendezvous {
namespace {

// Counts queued bytes, as a connection whose other end is frozen.
class StuckPeer final : public Connection {
 public:
  void Send(std::string_view, json::object) override {}
  void SendShared(std::shared_ptr<const std::string> bytes, bool) override {
    queued += bytes->size();
    texts.push_back(*bytes);
  }
  void SendBinary(std::string frame) override { queued += frame.size(); }
  size_t queued_bytes() const override { return queued; }
  void OnDrain(std::function<void()> fn) override { drain = std::move(fn); }
  void Close(std::string_view) override {}
  const std::string& address() const override { return address_; }
  // The other end reads everything.
  std::vector<std::string> Read() {
    std::vector<std::string> all = std::exchange(texts, {});
    queued = 0;
    drain();
    return all;
  }
  size_t queued = 0;
  std::vector<std::string> texts;
  std::function<void()> drain;

 private:
  const std::string address_ = "nowhere";
};

class FeedTest : public testing::Test {
 protected:
  FeedTest() : place_(std::move(*TempDir::Create())), publisher_(place_.path() / "logs") {
    EXPECT_TRUE(publisher_.Subscribe(&connection_, {{"after_seq", 0}, {"logs", false}}).ok());
  }
  ~FeedTest() override { publisher_.Remove(&connection_); }
  static JobEvent Progress(int index, int step) {
    JobEvent event;
    event.type = JobEvent::Type::kProgress;
    event.role = "worker";
    event.index = index;
    event.body = {{"step", step}, {"pad", std::string(1000, 'x')}};
    return event;
  }
  TempDir place_;
  EventPublisher publisher_;
  StuckPeer connection_;
};

TEST_F(FeedTest, OfProgressOnlyTheLatestWaitsForAPeerThatDoesNotRead) {
  for (int step = 0; step < 20'000; ++step) publisher_.PublishTransient(Progress(step % 2, step));
  EXPECT_LT(connection_.queued, size_t{2} << 20);
  connection_.Read();
  ASSERT_EQ(connection_.texts.size(), 2u);
  EXPECT_THAT(connection_.texts[0], testing::HasSubstr("\"step\":19998"));
  EXPECT_THAT(connection_.texts[1], testing::HasSubstr("\"step\":19999"));
  connection_.Read();
  EXPECT_TRUE(connection_.texts.empty());
}

TEST_F(FeedTest, RecordedEventsWaitForRoomAndAllCome) {
  constexpr int kEvents = 5'000;
  for (int seq = 1; seq <= kEvents; ++seq) {
    JobEvent event;
    event.type = JobEvent::Type::kNote;
    event.seq = seq;
    event.text = std::string(1000, 'x');
    publisher_.Add(event);
    publisher_.Release(seq);
  }
  EXPECT_LT(connection_.queued, size_t{2} << 20);
  size_t told = 0;
  while (told < kEvents) {
    const size_t now = connection_.Read().size();
    ASSERT_GT(now, 0u);
    told += now;
  }
  EXPECT_EQ(told, static_cast<size_t>(kEvents));
}

}  // namespace
}  // namespace shoal::rendezvous
