#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/resource.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fault_injection.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/utf8.h"

namespace shoal {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("odd");
  return x / 2;
}

Result<int> Quarter(int x) {
  TRY_ASSIGN(const int half, Half(x));
  TRY_ASSIGN(const int quarter, Half(half));
  return quarter;
}

TEST(Status, TryReturnsTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Quarter(6).status().With("six").message(), "six: odd");
  EXPECT_EQ(ExitCodeOf(Code::kNotFound), 4);
}

TEST(Crc32c, KnownVectors) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  const std::string zeros(32, '\0');
  EXPECT_EQ(Crc32c(zeros.data(), zeros.size()), 0x8a9136aau);  // RFC 3720 B.4
}

TEST(Crc32c, IsTheSameInPieces) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::resize(8000, rc::gen::arbitrary<std::string>());
    const auto cut = *rc::gen::inRange<size_t>(0, text.size() + 1);
    const uint32_t whole = Crc32c(text.data(), text.size());
    RC_ASSERT(whole == Crc32c(text.data() + cut, text.size() - cut, Crc32c(text.data(), cut)));
  }));
  std::string big(100'000, 'x');
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 31);
  uint32_t bytewise = 0;
  for (const char c : big) bytewise = Crc32c(&c, 1, bytewise);
  EXPECT_EQ(bytewise, Crc32c(big.data(), big.size()));
  // Where the streams are long, short, and none.
  for (const size_t size : {383, 384, 385, 767, 768, 3071, 3072, 3456, 4096, 7000}) {
    uint32_t one = 0;
    for (size_t i = 0; i < size; ++i) one = Crc32c(&big[i], 1, one);
    EXPECT_EQ(one, Crc32c(big.data(), size)) << size;
  }
}

TEST(AtomicFile, LeavesTheOldFileUntilCommitted) {
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const auto path = dir->path() / "model";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok() && file->Write("half").ok());
  }
  EXPECT_EQ(*ReadFile(path, 100), "old");
  ASSERT_TRUE(SetFaults("file.write=ENOSPC@1").ok());
  const Status full = WriteFileAtomically(path, "new");
  ASSERT_TRUE(SetFaults("").ok());
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_EQ(*ReadFile(path, 100), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir->path()), {}), 1);
  EXPECT_EQ(ReadFile(path, 2).status().code(), Code::kResourceExhausted);
}

TEST(AtomicFile, HasTheLongestNamesThatFilesMayHave) {
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  std::string wide;
  while (wide.size() + 2 <= NAME_MAX) wide += "\u00e4";
  for (const std::string& name : {std::string(NAME_MAX, 'x'), std::string(240, 'x'), wide}) {
    const Status written = WriteFileAtomically(dir->path() / name, "all");
    EXPECT_TRUE(written.ok()) << written.message();
    EXPECT_EQ(*ReadFile(dir->path() / name, 100), "all");
  }
  auto file = AtomicFile::Create(dir->path() / wide);
  ASSERT_TRUE(file.ok());
  for (const auto& entry : std::filesystem::directory_iterator(dir->path()))
    EXPECT_TRUE(IsUtf8(entry.path().filename().string())) << entry.path();
}

TEST(Errors, LackOfDescriptorsNamesTheLimit) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const Status mine = ErrnoStatus(EMFILE, "cannot open x");
  EXPECT_EQ(mine.code(), Code::kResourceExhausted);
  EXPECT_EQ(mine.message(), "cannot open x: Too many open files; raise `ulimit -n`, which is " +
                                std::to_string(limit.rlim_cur));
  EXPECT_THAT(ErrnoStatus(ENFILE, "cannot open x").message(), ::testing::HasSubstr("fs.file-max"));
  EXPECT_EQ(ErrnoStatus(ENOENT, "cannot open x").message(),
            "cannot open x: No such file or directory");
}

TEST(Bytes, ReaderNeverRunsOver) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put<uint32_t>(7);
  writer.PutString("abc");
  ByteReader reader(bytes);
  uint32_t number = 0;
  std::string_view text;
  ASSERT_TRUE(reader.Get(&number).ok() && reader.GetString(&text, 3).ok());
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(text, "abc");
  EXPECT_EQ(reader.Get(&number).code(), Code::kOutOfRange);
  ByteReader bounded(std::string_view(bytes).substr(4));
  EXPECT_EQ(bounded.GetString(&text, 2).code(), Code::kOutOfRange);
}

TEST(Json, BadTextIsAnErrorWithItsPlace) {
  EXPECT_EQ(GetIntOr(*ParseJsonObject(R"({"a":3})"), "a", 0), 3);
  EXPECT_FALSE(ParseJson("{\"a\":").ok());
  EXPECT_FALSE(ParseJson("{} x").ok());
  EXPECT_FALSE(ParseJson(std::string(100, '[')).ok());
  EXPECT_EQ(GetString(*ParseJsonObject("{}"), "who").status().message(),
            "field 'who': expected a string");
}

TEST(Id, JobIdsAreCleanAndHmacIsRfc4231) {
  EXPECT_EQ(NewJobId("Text8 Vectors!").rfind("text8-vectors-", 0), 0u);
  EXPECT_EQ(HmacSha256Hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Utf8, LengthIsRfc3629s) {
  EXPECT_EQ(Utf8Length("a\xff"), 1u);
  EXPECT_EQ(Utf8Length("\xc2\x80"), 2u);
  EXPECT_EQ(Utf8Length("\xed\x9f\xbf"), 3u);
  EXPECT_EQ(Utf8Length("\xf4\x8f\xbf\xbf"), 4u);
  // Nothing, a tail alone, cut off, overlong, a surrogate, above U+10FFFF, no lead byte.
  for (const char* bad : {"", "\x80", "\xe2\x82", "\xc0\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80"}) {
    EXPECT_EQ(Utf8Length(bad), 0u);
  }
}

TEST(Utf8, WhatIsNotIsReplacedOrEscaped) {
  EXPECT_TRUE(IsUtf8("caf\xc3\xa9"));
  EXPECT_FALSE(IsUtf8("caf\xe9"));
  EXPECT_EQ(ValidUtf8("caf\xe9.txt \xc3\xa9"), "caf\xef\xbf\xbd.txt \xc3\xa9");
  EXPECT_EQ(EscapedUtf8("caf\xe9.txt \xc3\xa9"), "caf\\xe9.txt \xc3\xa9");
}

TEST(Clock, FormatsForPeople) {
  EXPECT_EQ(FormatWall(WallTime{}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatDuration(std::chrono::milliseconds(80)), "80 ms");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(192)), "3 min 12 s");
}

}  // namespace
}  // namespace shoal
