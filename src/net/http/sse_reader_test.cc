#include "net/http/sse_reader.h"

#include <gtest/gtest.h>

namespace shoal::net {
namespace {

std::string Read(const std::string& bytes, size_t step, SseReader* reader) {
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += step) {
    std::vector<SseEvent> events;
    if (!reader->Feed(std::string_view(bytes).substr(at, step), &events).ok()) return "failed";
    for (const SseEvent& event : events)
      text += "[" + event.type + "|" + event.data + "|" + event.id + "]";
  }
  return text;
}

TEST(SseReader, ReadsHoweverItIsCut) {
  const struct {
    std::string bytes;
    std::string events;
  } cases[] = {
      {"data: a\n\n", "[message|a|]"},
      {"data: a\r\ndata:b\r\rdata: c\n\n", "[message|a\nb|][message|c|]"},
      {"\xef\xbb\xbf"
       "data: a\n\n",
       "[message|a|]"},
      {": comment\nevent: log\nid: 7\ndata: x\n\ndata: y\n\n", "[log|x|7][message|y|7]"},
      {"data\n\n", "[message||]"},
      {"data\ndata\n\n", "[message|\n|]"},
      {"data:  two blanks\n\n", "[message| two blanks|]"},
      {"event: nothing\n\ndata: a\n\n", "[message|a|]"},
      {"id: 1\n\ndata: a\n\nid\ndata: b\n\n", "[message|a|1][message|b|]"},
      {std::string("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", 31), "[message|a|1][message|b|1]"},
      {"unknown: x\nDATA: y\ndata: a\n\n", "[message|a|]"},
      {"data: not ended", ""},
      {"data: a\n", ""},
      {"data: \xff\n\n", "[message|\xef\xbf\xbd|]"},
  };
  for (const auto& one : cases) {
    for (const size_t step : {size_t{1}, size_t{2}, size_t{3}, one.bytes.size()}) {
      SseReader reader;
      EXPECT_EQ(Read(one.bytes, step, &reader), one.events) << one.bytes;
    }
  }
}

TEST(SseReader, KeepsIdAndRetry) {
  SseReader reader;
  EXPECT_FALSE(reader.retry().has_value());
  Read("retry: 1500\nid: 9\ndata: a\n\nid: 10\n", 5, &reader);
  EXPECT_EQ(reader.retry(), std::chrono::milliseconds(1500));
  EXPECT_EQ(reader.last_id(), "9") << "the event of 10 has not come";
  Read("retry: 1x\nretry: -1\nretry:\n", 5, &reader);
  EXPECT_EQ(reader.retry(), std::chrono::milliseconds(1500));
  Read("retry: 999999999999\n", 5, &reader);
  EXPECT_EQ(reader.retry(), std::chrono::hours(24));
}

TEST(SseReader, BoundsAnEvent) {
  const std::string line = "data: " + std::string(94, 'x') + "\n";
  SseReader lines(1000);
  std::string many;
  for (int i = 0; i < 20; ++i) many += line;
  EXPECT_EQ(Read(many, 7, &lines), "failed");
  EXPECT_EQ(Read("\n", 1, &lines), "failed");
  SseReader one(1000);
  EXPECT_EQ(Read("data: " + std::string(2000, 'x'), 7, &one), "failed");
  SseReader fine(1000);
  for (int i = 0; i < 20; ++i) EXPECT_NE(Read(line + "\n", 7, &fine), "failed");
}

}  // namespace
}  // namespace shoal::net
