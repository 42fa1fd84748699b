#include "net/http/chunked_body.h"

#include <gtest/gtest.h>

namespace shoal::net {
namespace {

struct Decoded {
  std::string body;
  int status = 0;
  bool done = false;
  size_t used = 0;
};

Decoded Decode(const std::string& bytes, size_t step, size_t limit = 1000) {
  Decoded out;
  ChunkedDecoder decoder;
  std::optional<HttpRefusal> refusal;
  while (out.used < bytes.size() && !refusal && !decoder.done())
    out.used +=
        decoder.Decode(std::string_view(bytes).substr(out.used, step), limit, &out.body, &refusal);
  out.done = decoder.done();
  if (refusal) out.status = refusal->status;
  return out;
}

TEST(ChunkedBody, DecodesHoweverItIsCut) {
  const std::string bytes =
      "5\r\nhello\r\n006;name=\"value\";other\r\n world\r\n0\r\nX-Trailer: dropped\r\n\r\nGET";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    const Decoded got = Decode(bytes, step);
    EXPECT_EQ(got.status, 0) << step;
    EXPECT_TRUE(got.done) << step;
    EXPECT_EQ(got.body, "hello world") << step;
    EXPECT_EQ(got.used, bytes.size() - 3) << step;
  }
}

TEST(ChunkedBody, RefusesWhatIsNone) {
  const struct {
    std::string bytes;
    int status;
  } cases[] = {
      {"\r\n", 400},
      {"x\r\n", 400},
      {"0x5\r\nhello\r\n", 400},
      {"+5\r\nhello\r\n", 400},
      {"-5\r\nhello\r\n", 400},
      {" 5\r\nhello\r\n", 400},
      {"5 \r\nhello\r\n", 400},
      {"5 ;a\r\nhello\r\n", 400},
      {"5,\r\nhello\r\n", 400},
      {"5\nhello\r\n", 400},
      {"5\rhello\r\n", 400},
      {"5\r\r\nhello\r\n", 400},
      {"5\r\nhello world\r\n", 400},
      {"5\r\nhello\n", 400},
      {"5\r\nhello0\r\n\r\n", 400},
      {std::string("5\0\r\nhello\r\n", 11), 400},
      {"5;a\x01\r\nhello\r\n", 400},
      {"fffffffffffffffff\r\n", 413},
      {"ffffffffffffffff\r\n", 413},
      {"3e9\r\n", 413},
      {"0\r\nno header\r\n\r\n", 400},
      {"0\r\na b: c\r\n\r\n", 400},
      {"0\r\n folded\r\n\r\n", 400},
      {"0\r\na: b\n\r\n", 400},
      {"5;" + std::string(5000, 'a') + "\r\n", 400},
  };
  for (const auto& one : cases) {
    for (const size_t step : {size_t{1}, one.bytes.size()})
      EXPECT_EQ(Decode(one.bytes, step).status, one.status) << one.bytes.substr(0, 40);
  }
}

TEST(ChunkedBody, BoundsTheBodyAndItsOverhead) {
  EXPECT_EQ(Decode("3e8\r\n" + std::string(1000, 'a') + "\r\n0\r\n\r\n", 7).body.size(), 1000u);
  EXPECT_EQ(Decode("3e8\r\n" + std::string(1000, 'a') + "\r\n1\r\nb\r\n0\r\n\r\n", 7).status, 413);
  std::string extensions;
  for (int i = 0; i < 100; ++i) extensions += "1;" + std::string(300, 'e') + "\r\na\r\n";
  EXPECT_EQ(Decode(extensions, 4096).status, 400);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 100; ++i) trailers += "a: " + std::string(300, 'e') + "\r\n";
  EXPECT_EQ(Decode(trailers, 4096).status, 431);
}

}  // namespace
}  // namespace shoal::net
