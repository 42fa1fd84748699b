// Replies of name servers with SRV records, whole and broken; who does not answer.
#include "net/srv_record.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shoal::net {
namespace {

using std::string_literals::operator""s;

std::string Name(const std::string& text) {
  std::string name;
  size_t begin = 0;
  for (size_t end = text.find('.'); begin < text.size(); end = text.find('.', begin)) {
    const std::string label = text.substr(begin, end - begin);
    name += static_cast<char>(label.size()) + label;
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return name + '\0';
}

std::string Short(int value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

std::string Record(const std::string& name, int type, const std::string& data) {
  return name + Short(type) + Short(1) + Short(0) + Short(60) +
         Short(static_cast<int>(data.size())) + data;
}

std::string Srv(int priority, int weight, int port, const std::string& target) {
  return Short(priority) + Short(weight) + Short(port) + Name(target);
}

// Of the question for _c._tcp.m.
std::string Reply(int code, const std::vector<std::string>& answers,
                  const std::vector<std::string>& additional) {
  std::string reply = Short(7) + Short(0x8580 | code) + Short(1) +
                      Short(static_cast<int>(answers.size())) + Short(0) +
                      Short(static_cast<int>(additional.size())) + Name("_c._tcp.m") + Short(33) +
                      Short(1);
  for (const std::string& one : answers) reply += one;
  for (const std::string& one : additional) reply += one;
  return reply;
}

constexpr int kA = 1;
constexpr int kSrv = 33;
const std::string kAsked = "\xc0\x0c"s;  // the question's name, by a pointer

std::string Two() {
  return Reply(0,
               {Record(kAsked, kSrv, Srv(2, 0, 7001, "late.m")),
                Record(kAsked, kSrv, Srv(1, 0, 7000, "first.m"))},
               {Record(Name("first.m"), kA, "\x0a\x00\x00\x07"s)});
}

TEST(Srv, TheBestIsFirstAndHasItsAddress) {
  const auto services = ParseSrvReply(Two());
  ASSERT_TRUE(services.ok()) << services.status().message();
  ASSERT_EQ(services->size(), 2u);
  EXPECT_EQ(services->front().target, "first.m");
  EXPECT_EQ(services->front().address, "10.0.0.7");
  EXPECT_EQ(services->front().port, 7000);
  EXPECT_EQ(services->back().address, "");
}

TEST(Srv, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(ParseSrvReply(Reply(3, {}, {})).status().code(), Code::kNotFound);
  EXPECT_EQ(ParseSrvReply(Reply(0, {}, {})).status().code(), Code::kNotFound);
  const std::string none = Reply(0, {Record(kAsked, kSrv, Srv(0, 0, 1, ""))}, {});
  EXPECT_EQ(ParseSrvReply(none).status().code(), Code::kNotFound);
  EXPECT_EQ(ParseSrvReply(Reply(2, {}, {})).status().code(), Code::kUnavailable);
}

TEST(Srv, NoReplyThatEndsTooEarlyIsTaken) {
  const std::string whole = Two();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(ParseSrvReply(whole.substr(0, size)).status().code(), Code::kDataLoss) << size;
  std::string question = whole;
  question[2] = 0;
  EXPECT_FALSE(ParseSrvReply(question).ok());
}

TEST(Srv, WhoIsNotThereDoesNotAnswer) {
  EXPECT_EQ(LookUpSrv("_c._tcp.m", "127.0.0.1:1", std::chrono::seconds(1)).status().code(),
            Code::kUnavailable);
  EXPECT_EQ(LookUpSrv("_c._tcp.m", "name:1", std::chrono::seconds(1)).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace shoal::net
