#include "data/corpus/source_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Result<std::string> ReadAll(const std::filesystem::path& path, size_t block = 1000) {
  TRY_ASSIGN(const SourceFile file, InspectFile(path));
  TRY_ASSIGN(auto stream, TextStream::Open(file));
  std::string text;
  std::string buffer(block, '\0');
  for (;;) {
    TRY_ASSIGN(const size_t got, stream->Read(buffer.data(), block));
    if (got == 0) return text;
    text.append(buffer, 0, got);
  }
}

std::string LongText() {
  std::mt19937_64 random(7);
  return RandomText(random, 700'000, 80);
}

TEST(Source, ReadsPlainGzipAndZstdByContentNotByName) {
  const std::string text = LongText();
  TextFiles files({text, Gzip(text), Zstd(text)});
  for (const std::string& path : files.paths()) {
    const auto read = ReadAll(path);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(*read == text) << path;
    EXPECT_EQ(MeasureText(InspectFile(path).value()).value(), text.size());
  }
}

TEST(Source, ReadsSeveralMembersAndFrames) {
  TextFiles files({Gzip("one two ") + Gzip("") + Gzip("three\n") + std::string(512, '\0'),
                   Zstd("one two ") + Zstd("") + Zstd("three\n")});
  for (const std::string& path : files.paths()) EXPECT_EQ(ReadAll(path).value(), "one two three\n");
}

TEST(Source, SkipsForward) {
  const std::string text = LongText();
  TextFiles files({text, Gzip(text), Zstd(text)});
  for (const std::string& path : files.paths()) {
    auto stream = TextStream::Open(InspectFile(path).value()).value();
    ASSERT_TRUE(stream->SkipTo(600'001).ok());
    char byte = 0;
    ASSERT_EQ(stream->Read(&byte, 1).value(), 1u);
    EXPECT_EQ(byte, text[600'001]);
    EXPECT_EQ(stream->position(), 600'002u);
    ASSERT_TRUE(stream->SkipTo(UINT64_MAX).ok());
    EXPECT_EQ(stream->position(), text.size());
    EXPECT_EQ(stream->Read(&byte, 1).value(), 0u);
  }
}

std::string Refusal(const std::filesystem::path& path) {
  const auto result = InspectFile(path);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
  return result.status().message();
}

TEST(Source, RefusesFilesThatAreNotText) {
  TextFiles files;
  EXPECT_THAT(Refusal(files.directory() / "none"), HasSubstr("none does not exist"));
  EXPECT_THAT(Refusal(files.directory()), HasSubstr("is a directory"));
  EXPECT_THAT(Refusal("/dev/zero"), HasSubstr("pipe or device"));
  EXPECT_THAT(Refusal(files.Add(std::string("some\0text", 9))), HasSubstr("byte 4 is NUL"));
  EXPECT_THAT(Refusal(files.Add(std::string("h\0i\0", 4))), HasSubstr("UTF-16"));
  EXPECT_THAT(Refusal(files.Add("\x01\x02\x03\x04 binary")), HasSubstr("control characters"));
  EXPECT_THAT(Refusal(files.Add(std::string("\xfd"
                                            "7zXZ\0....",
                                            10))),
              AllOf(HasSubstr("packed with xz"), HasSubstr("xz -dc")));
  EXPECT_THAT(Refusal(files.Add(Gzip(std::string("ab\0c", 4)))), HasSubstr("byte 2 of what it"));
  EXPECT_THAT(Refusal(files.Add("\x1f\x8bgarbage that is no gzip")), HasSubstr("are corrupt"));
  EXPECT_TRUE(InspectFile(files.Add("")).ok());
}

TEST(Source, RefusesAnUnreadableFile) {
  TextFiles files({"text"});
  ASSERT_EQ(::chmod(files.directory().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(files.paths()[0].c_str(), 0), 0);
  // access() asks for the real user; root may read everything and must step down for this.
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::setresuid(65534, 65534, 0), 0);
  }
  const std::string why = Refusal(files.paths()[0]);
  if (root) {
    ASSERT_EQ(::setresuid(0, 0, 0), 0);
  }
  EXPECT_THAT(why, HasSubstr("cannot be read: Permission denied"));
}

TEST(Source, SaysThatAFileShrankOrDisappeared) {
  TextFiles files({std::string(500'000, 'x'), Gzip(LongText())});
  for (const std::string& path : files.paths()) {
    const SourceFile file = InspectFile(path).value();
    auto stream = TextStream::Open(file).value();
    char block[1000];
    ASSERT_TRUE(stream->Read(block, sizeof block).ok());
    std::filesystem::resize_file(path, 1500);
    Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i)
      status = stream->Read(block, sizeof block).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("has shrunk to 1500 bytes"));
    EXPECT_THAT(TextStream::Open(file).status().message(), HasSubstr("has shrunk to 1500 bytes"));
    std::filesystem::remove(path);
    EXPECT_EQ(TextStream::Open(file).status().code(), Code::kDataLoss);
    EXPECT_THAT(TextStream::Open(file).status().message(),
                HasSubstr("was there when the job began"));
  }
}

TEST(Source, LackOfDescriptorsIsNoFaultOfTheFile) {
  TextFiles files({"text"});
  const SourceFile file = InspectFile(files.paths()[0]).value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status opened = TextStream::Open(file).status();
  const Status inspected = InspectFile(files.paths()[0]).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const Status& status : {opened, inspected}) {
    EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.message();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("raise `ulimit -n`, which is 0"), HasSubstr(files.paths()[0]),
                      Not(HasSubstr("put it back"))));
  }
}

TEST(Source, AFileThatGrowsStaysTheTextItWas) {
  TextFiles files({"one two"});
  const SourceFile file = InspectFile(files.paths()[0]).value();
  ASSERT_TRUE(WriteFileAtomically(files.paths()[0], "one twothree four", 0644, false).ok());
  auto stream = TextStream::Open(file).value();
  char block[100];
  EXPECT_EQ(stream->Read(block, sizeof block).value(), 7u);
  EXPECT_EQ(stream->Read(block, sizeof block).value(), 0u);
}

TEST(Source, EveryTruncationAndManyCorruptionsAreFound) {
  std::mt19937_64 random(3);
  const std::string text = RandomText(random, 3000, 50);
  for (const std::string& packed : {Gzip(text), Zstd(text)}) {
    TextFiles files;
    for (size_t size = 5; size < packed.size(); size += 7) {
      const auto read = ReadAll(files.Add(packed.substr(0, size)));
      ASSERT_FALSE(read.ok()) << size << " of " << packed.size();
      EXPECT_THAT(read.status().message(), HasSubstr("compressed bytes"));
    }
    for (int i = 0; i < 300; ++i) {
      std::string damaged = packed;
      damaged[4 + random() % (packed.size() - 4)] ^= static_cast<char>(1 << random() % 8);
      (void)ReadAll(files.Add(damaged));  // any answer, but no crash (zstd here has no checksum)
    }
  }
}

}  // namespace
}  // namespace shoal::data
