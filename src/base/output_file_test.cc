#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/fault_injection.h"
#include "base/file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

TEST(OutputStream, KeepsTheFirstErrorAndWritesNothingMore) {
  const auto full = OpenFile("/dev/full", O_WRONLY);
  ASSERT_TRUE(full.ok());
  OutputStream out(full->get());
  EXPECT_FALSE(out.Write("text"));
  EXPECT_EQ(out.status().code(), Code::kResourceExhausted);
  EXPECT_FALSE(out.reader_gone());
  EXPECT_FALSE(out.Write("more"));
  OutputStream closed(-1);
  EXPECT_FALSE(closed.Write("text"));
  EXPECT_FALSE(closed.status().ok());
}

TEST(OutputStream, AReaderThatHasGoneIsNoError) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd writer(ends[1]);
  ::close(ends[0]);
  OutputStream out(writer.get());
  EXPECT_FALSE(out.Write("text"));
  EXPECT_TRUE(out.reader_gone());
  EXPECT_TRUE(out.status().ok());
}

TEST(OutputStream, WaitsWhereTheDescriptorIsNonBlocking) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  UniqueFd writer(ends[1]);
  ASSERT_EQ(::fcntl(ends[0], F_SETFL, 0), 0);
  const std::string text(1 << 20, 'x');
  std::string got;
  std::thread reader([&] {
    char block[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], block, sizeof block)) > 0;)
      got.append(block, static_cast<size_t>(n));
    ::close(ends[0]);
  });
  OutputStream out(writer.get());
  EXPECT_TRUE(out.Write(text));
  writer.Reset();
  reader.join();
  EXPECT_EQ(got.size(), text.size());
}

class OutputFile : public ::testing::Test {
 protected:
  std::string Content(const fs::path& path) { return ReadFile(path, 1000).value_or("none"); }
  struct stat StatusOf(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status;
  }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(temp_.path()), {}));
  }

  TempDir temp_ = TempDir::Create("output-test").value();
  fs::path path_ = temp_.path() / "file";
};

TEST_F(OutputFile, IsMadeAsTheUmaskSays) {
  const mode_t old = ::umask(027);
  EXPECT_TRUE(WriteOutputFile(path_, "text").ok());
  ::umask(old);
  EXPECT_EQ(StatusOf(path_).st_mode & 07777, 0640u);
  EXPECT_EQ(Content(path_), "text");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(OutputFile, IsReplacedWholeAndKeepsItsMode) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old", 0600).ok());
  const auto inode = StatusOf(path_).st_ino;
  ASSERT_TRUE(SetFaults("file.write=ENOSPC@1").ok());
  EXPECT_EQ(WriteOutputFile(path_, "new").code(), Code::kResourceExhausted);
  ASSERT_TRUE(SetFaults("").ok());
  EXPECT_EQ(Content(path_), "old");
  ASSERT_TRUE(WriteOutputFile(path_, "new").ok());
  EXPECT_EQ(Content(path_), "new");
  EXPECT_NE(StatusOf(path_).st_ino, inode);
  EXPECT_EQ(StatusOf(path_).st_mode & 07777, 0600u);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(OutputFile, PiecesAppearWholeOrNotAtAll) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old", 0640).ok());
  {
    OutputWriter dropped = OutputWriter::Open(path_).value();
    ASSERT_TRUE(dropped.Write("half").ok());
  }
  EXPECT_EQ(Content(path_), "old");
  OutputWriter whole = OutputWriter::Open(path_).value();
  ASSERT_TRUE(whole.LimitMode(0600).ok());  // of a new file only
  ASSERT_TRUE(whole.Write("n").ok());
  ASSERT_TRUE(whole.Write("ew").ok());
  ASSERT_TRUE(whole.Commit().ok());
  EXPECT_EQ(Content(path_), "new");
  EXPECT_EQ(StatusOf(path_).st_mode & 07777, 0640u);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(OutputFile, PiecesGoThroughDevicesAndHardLinks) {
  ASSERT_TRUE(WriteFileAtomically(path_, "longer than before").ok());
  fs::create_hard_link(path_, temp_.path() / "other");
  OutputWriter both = OutputWriter::Open(path_).value();
  ASSERT_TRUE(both.Write("new").ok());
  ASSERT_TRUE(both.Commit().ok());
  EXPECT_EQ(Content(temp_.path() / "other"), "new");
  EXPECT_EQ(OutputWriter::Open(temp_.path()).status().code(), Code::kInvalidArgument);
  // A device of our own: a mistake must not cost the machine its /dev/full.
  const fs::path device = temp_.path() / "full";
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) return;  // not root
  OutputWriter full = OutputWriter::Open(device).value();
  EXPECT_EQ(full.Write("text").code(), Code::kResourceExhausted);
  EXPECT_EQ(full.Commit().code(), Code::kResourceExhausted);
  EXPECT_TRUE(S_ISCHR(StatusOf(device).st_mode));
}

TEST_F(OutputFile, LinksAreFollowedAndHardLinksStayOneFile) {
  fs::create_symlink("target", path_);
  ASSERT_TRUE(WriteOutputFile(path_, "one").ok());  // what it names does not exist yet
  EXPECT_EQ(Content(temp_.path() / "target"), "one");
  fs::create_hard_link(temp_.path() / "target", temp_.path() / "other");
  ASSERT_TRUE(WriteOutputFile(path_, "two").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(Content(temp_.path() / "other"), "two");
  fs::create_symlink("loop", temp_.path() / "loop");
  EXPECT_FALSE(WriteOutputFile(temp_.path() / "loop", "text").ok());
}

TEST_F(OutputFile, DevicesFifosAndDescriptorsAreWrittenTo) {
  // A terminal: where it lies no file can be made, so a mistake here costs the machine nothing.
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  char name[100];
  ASSERT_TRUE(::grantpt(terminal.get()) == 0 && ::unlockpt(terminal.get()) == 0);
  ASSERT_EQ(::ptsname_r(terminal.get(), name, sizeof name), 0);
  const auto held = OpenFile(name, O_RDWR | O_NOCTTY);  // else what is written is lost at its close
  char block[10];
  ASSERT_TRUE(held.ok() && WriteOutputFile(name, "text").ok());
  EXPECT_EQ(::read(terminal.get(), block, sizeof block), 4);
  EXPECT_TRUE(fs::is_character_file(name));

  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto reader = OpenFile(path_, O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(reader.ok() && WriteOutputFile(path_, "text").ok());
  EXPECT_EQ(::read(reader->get(), block, sizeof block), 4);
  EXPECT_TRUE(fs::is_fifo(path_));

  const fs::path log = temp_.path() / "log";
  const auto appended = OpenFile(log, O_WRONLY | O_CREAT | O_APPEND);
  ASSERT_TRUE(appended.ok() && WriteAll(appended->get(), "before ").ok());
  EXPECT_TRUE(WriteOutputFile("/dev/fd/" + std::to_string(appended->get()), "text").ok());
  EXPECT_EQ(Content(log), "before text");
  EXPECT_EQ(WriteOutputFile(temp_.path(), "text").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace shoal
