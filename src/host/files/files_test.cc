// Shipping a directory: ignore rules beside git's own, manifests that lie, caches that are torn,
// written to and full.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "base/fault_injection.h"
#include "host/files/ignore_rules.h"
#include "host/files/materialize_files.h"
#include "host/files/python_env.h"
#include "host/files/snapshot.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

void Put(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string Text(const fs::path& path) { return ReadFile(path, 64 << 20).value(); }

class FilesTest : public testing::Test {
 protected:
  BlobCache Cache(std::string_view boot = "boot 1") {
    return BlobCache::Open(dir_.path() / "cache", boot).value();
  }
  Result<Snapshot> Take() {
    BlobCache cache = Cache();
    return TakeSnapshot(src_, &cache);
  }
  std::vector<std::string> Paths() {
    const auto snapshot = Take();
    std::vector<std::string> paths;
    for (const ManifestEntry& entry : snapshot.value().manifest.entries)
      paths.push_back(entry.path);
    return paths;
  }

  TempDir dir_ = TempDir::Create().value();
  fs::path src_ = dir_.path() / "src";
  void SetUp() override { fs::create_directories(src_); }
  void TearDown() override { ASSERT_TRUE(SetFaults("").ok()); }
};

TEST(IgnoreRules, AsGitignoreSays) {
  struct Case {
    const char* rules;
    const char* path;
    bool directory;
    bool ignored;
  };
  const Case cases[] = {
      {"*.o", "a/b.o", false, true},      {"*.o", "b.c", false, false},
      {"/a", "a", false, true},           {"/a", "b/a", false, false},
      {"a/b", "a/b", false, true},        {"a/b", "x/a/b", false, false},
      {"build/", "build", true, true},    {"build/", "build", false, false},
      {"build/", "x/build", true, true},  {"**/x", "a/b/x", false, true},
      {"a/**", "a", true, false},         {"a/**", "a/b/c", false, true},
      {"a/**/b", "a/b", false, true},     {"a/**/b", "a/x/y/b", false, true},
      {"*\n!keep", "keep", false, false}, {"!keep\n*", "keep", false, true},
      {"#a\n\\#b", "#b", false, true},    {"#a", "#a", false, false},
      {"a ", "a", false, true},           {"a\\ ", "a ", false, true},
      {"[a-c]x", "bx", false, true},      {"[!a-c]x", "bx", false, false},
      {"[]x", "]x", false, false},        {"a?c", "a/c", false, false},
      {"a*c", "abbc", false, true},       {"x/*", "x/y/z", false, false},
      {"\\!a", "!a", false, true},        {"a\r\nb", "a", false, true},
      {"[[:digit:]]", "7", false, true},  {"[[:nothing:]]", "7", false, false},
  };
  for (const Case& one : cases) {
    IgnoreRules rules;
    rules.Add(one.rules, "");
    EXPECT_EQ(rules.Ignored(one.path, one.directory), one.ignored)
        << one.rules << " | " << one.path;
  }
}

TEST(IgnoreRules, ManyStarsAreNotTriedInAllCombinations) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(GlobMatches(pattern + "b", std::string(400, 'a'), true));
}

// Random trees and rules, in two depths, against `git ls-files --others --exclude-per-directory`.
TEST_F(FilesTest, LeavesOutWhatGitLeavesOut) {
  if (std::system("git --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
  std::mt19937 random(20);
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[random() % from.size()];
  };
  const std::vector<std::string> parts = {"a", "b", "ab", "a.o", "b.o", "[a]", "#x", "a b", "x!"};
  const std::vector<std::string> glob = {"a",    "b",    "*",   "**",  "/",     "/",  "?",
                                         "[ab]", "[!a]", ".o",  "\\#", "!",     "[a", "]",
                                         "x",    " ",    "\\ ", "a-b", "[a-b]*"};
  for (int round = 0; round < 12; ++round) {
    const fs::path root = dir_.path() / ("tree" + std::to_string(round));
    for (int i = 0; i < 25; ++i) {
      std::string path = pick(parts);
      for (unsigned depth = random() % 4; depth > 0; --depth) path += "/" + pick(parts);
      std::error_code taken;
      fs::create_directories((root / path).parent_path(), taken);
      if (!taken && !fs::exists(root / path)) Put(root / path, "x");
    }
    for (const char* where : {"", "a"}) {
      if (*where != 0 && !fs::is_directory(root / where)) continue;
      std::string rules;
      for (int line = 0; line < 5; ++line) {
        for (unsigned words = 1 + random() % 4; words > 0; --words) rules += pick(glob);
        rules += random() % 3 == 0 ? "/\n" : "\n";
      }
      Put(root / where / kIgnoreFile, rules);
    }
    const std::string list = (dir_.path() / "list").string();
    const std::string command =
        "cd '" + root.string() +
        "' && git init -q . && git ls-files -z --others --exclude-per-directory=" +
        std::string(kIgnoreFile) + " > '" + list + "' && rm -rf .git";
    ASSERT_EQ(std::system(command.c_str()), 0);
    std::set<std::string> expected;
    std::string name;
    for (const char c : Text(list)) {
      if (c != '\0') {
        name += c;
      } else {
        expected.insert(std::exchange(name, {}));
      }
    }
    BlobCache cache = Cache();
    const auto snapshot = TakeSnapshot(root, &cache);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
    std::set<std::string> got;
    for (const ManifestEntry& entry : snapshot->manifest.entries) {
      if (entry.kind == ManifestEntry::Kind::kFile) got.insert(entry.path);
    }
    EXPECT_EQ(got, expected) << "round " << round << ":\n" << Text(root / kIgnoreFile);
  }
}

TEST_F(FilesTest, GoesThereAndComesOutTheSame) {
  Put(src_ / "main.py", "print(1)");
  Put(src_ / "deep/er/data", std::string(3 << 20, 'd'));
  Put(src_ / "tool", "#!/bin/sh\n");
  fs::permissions(src_ / "tool", fs::perms::owner_all);
  Put(src_ / "empty", "");
  fs::create_directory(src_ / "hollow");
  fs::create_symlink("../main.py", src_ / "deep/link");
  fs::create_symlink("er/../er/data", src_ / "deep/winding");
  fs::create_symlink("nowhere", src_ / "dangling");
  Put(src_ / ".git/config", "x");
  Put(src_ / "venv/pyvenv.cfg", "x");
  const auto snapshot = Take();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  EXPECT_EQ(snapshot->left_out, (std::vector<std::string>{".git", "venv"}));
  const auto parsed = ParseManifest(ToText(snapshot->manifest));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, snapshot->manifest);
  BlobCache cache = Cache();
  EXPECT_TRUE(FindMissingBlobs(*parsed, &cache).empty());
  const fs::path to = dir_.path() / "there";
  ASSERT_TRUE(MaterializeFiles(*parsed, &cache, to).ok());
  EXPECT_EQ(Text(to / "main.py"), "print(1)");
  EXPECT_EQ(Text(to / "deep/winding"), std::string(3 << 20, 'd'));
  EXPECT_EQ(fs::read_symlink(to / "deep/link"), "../main.py");
  EXPECT_EQ(::access((to / "tool").c_str(), X_OK), 0);
  EXPECT_TRUE(fs::is_directory(to / "hollow"));
  EXPECT_FALSE(fs::exists(to / ".git"));
  const auto again = TakeSnapshot(to, &cache);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->manifest, snapshot->manifest);
}

TEST_F(FilesTest, NamesWhatItCannotShip) {
  const auto refused = [&](Code code, const std::string& words) {
    const auto snapshot = Take();
    EXPECT_EQ(snapshot.status().code(), code) << snapshot.status().message();
    EXPECT_NE(snapshot.status().message().find(words), std::string::npos)
        << snapshot.status().message();
    EXPECT_NE(snapshot.status().message().find(".shoalignore"), std::string::npos);
  };
  fs::create_symlink("/etc/passwd", src_ / "absolute");
  refused(Code::kInvalidArgument, "out of the directory");
  fs::remove(src_ / "absolute");
  fs::create_directory_symlink("..", src_ / "up");
  refused(Code::kInvalidArgument, "out of the directory");
  fs::remove(src_ / "up");
  ASSERT_EQ(::mkfifo((src_ / "pipe").c_str(), 0600), 0);
  refused(Code::kInvalidArgument, "a pipe");
  Put(src_ / kIgnoreFile, "pipe\n");
  EXPECT_EQ(Paths(), std::vector<std::string>{std::string(kIgnoreFile)});
  Put(src_ / "bad\xff", "x");
  refused(Code::kInvalidArgument, "UTF-8");
  fs::remove(src_ / "bad\xff");
  // Sparse: nothing of it is read.
  Put(src_ / "huge", "");
  ASSERT_EQ(::truncate((src_ / "huge").c_str(), kMaxShippedBytes + 1), 0);
  refused(Code::kResourceExhausted, "larger than 4 GiB");
}

TEST_F(FilesTest, AFileThatChangesWhileItIsReadIsReadAgainOrRefused) {
  Put(src_ / "log", "first");
  ASSERT_TRUE(SetFaults("").ok());
  BlobCache cache = Cache();
  // Another process writes all the time.
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) Put(src_ / "log", "line " + std::to_string(i));
  });
  for (int i = 0; i < 20; ++i) {
    const auto snapshot = TakeSnapshot(src_, &cache);
    if (!snapshot.ok()) {
      EXPECT_EQ(snapshot.status().code(), Code::kAborted);
      EXPECT_NE(snapshot.status().message().find("was written to"), std::string::npos);
      continue;
    }
    // What was taken is one state of the file, whole.
    const ManifestEntry& entry = snapshot->manifest.entries.at(0);
    const fs::path copy = dir_.path() / ("copy" + std::to_string(i));
    ASSERT_TRUE(cache.Materialize({entry.sha256, entry.size}, false, copy).ok());
    EXPECT_EQ(Sha256Hex(Text(copy)), entry.sha256);
  }
  stop = true;
  writer.join();
}

TEST(Manifest, LetsNothingThroughThatLeadsOut) {
  const std::string sha(64, 'a');
  const auto file = [&](const std::string& path) {
    return R"({"path":")" + path + R"(","kind":"file","size":1,"sha256":")" + sha + R"("})";
  };
  const auto link = [](const std::string& path, const std::string& target) {
    return R"({"path":")" + path + R"(","kind":"link","target":")" + target + R"("})";
  };
  const auto parse = [](const std::string& entries) {
    return ParseManifest(R"({"version":1,"entries":[)" + entries + "]}").status();
  };
  const std::string dir = R"({"path":"d","kind":"dir"})";
  EXPECT_TRUE(parse("").ok());
  EXPECT_TRUE(parse(dir + "," + link("d/l", "../x")).ok());
  for (const char* path :
       {"/etc/x", "../x", "a/../b", "a//b", ".", "", "a/", "d/./x", "a\\u0000b", "a\\nb"}) {
    EXPECT_EQ(parse(file(path)).code(), Code::kInvalidArgument) << path;
  }
  for (const char* target :
       {"/etc/passwd", "../../x", "x/../../../y", "", "a//b", "../d/../../x"}) {
    EXPECT_EQ(parse(dir + "," + link("d/l", target)).code(), Code::kInvalidArgument) << target;
  }
  EXPECT_FALSE(parse(file("d/x")).ok()) << "in a directory that is not listed";
  EXPECT_FALSE(parse(link("d", "e") + "," + file("d/x")).ok()) << "through a link";
  EXPECT_FALSE(parse(file("b") + "," + file("a")).ok()) << "out of order";
  EXPECT_FALSE(parse(file("a") + "," + file("a")).ok()) << "twice";
  EXPECT_FALSE(parse(R"({"path":"a","kind":"file","size":-1,"sha256":")" + sha + R"("})").ok());
  EXPECT_FALSE(
      parse(R"({"path":"a","kind":"file","size":9000000000,"sha256":")" + sha + R"("})").ok());
  EXPECT_FALSE(
      parse(R"({"path":"a","kind":"file","size":1,"sha256":"../../../../etc/passwd"})").ok());
  EXPECT_FALSE(ParseManifest(R"({"version":2,"entries":[]})").ok());
}

RC_GTEST_PROP(ManifestProperty, ParsingNeverCrashes, (const std::string& text)) {
  (void)ParseManifest(text);
}

TEST_F(FilesTest, HealsWhatWasTornOrWrittenTo) {
  Put(src_ / "a", std::string(2 << 20, 'a'));
  const auto snapshot = Take();
  ASSERT_TRUE(snapshot.ok());
  const Blob blob{snapshot->manifest.entries[0].sha256, snapshot->manifest.entries[0].size};
  const fs::path path = dir_.path() / "cache/blobs" / blob.sha256.substr(0, 2) / blob.sha256;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  std::fstream(path, std::ios::in | std::ios::out) << "damage";
  {
    BlobCache cache = Cache();
    EXPECT_FALSE(cache.Has(blob)) << "its size is right, its content is not";
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(cache.Materialize(blob, false, dir_.path() / "out").code(), Code::kNotFound);
  }
  ASSERT_TRUE(Take().ok());
  // As after a power cut: of an earlier boot, and not whole.
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  BlobCache cache = Cache("boot 2");
  EXPECT_FALSE(cache.Has(blob));
  const auto whole = TakeSnapshot(src_, &cache);
  ASSERT_TRUE(whole.ok());
  BlobCache later = Cache("boot 3");
  EXPECT_TRUE(later.Has(blob)) << "whole ones of an earlier boot are hashed and kept";
}

TEST_F(FilesTest, TakesOnlyWhatItAskedFor) {
  BlobCache cache = Cache();
  auto writer = cache.Begin();
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write("something else").ok());
  const Blob expected{std::string(64, 'a'), 14};
  EXPECT_EQ(cache.Commit(std::move(*writer), &expected).status().code(), Code::kDataLoss);
  EXPECT_FALSE(cache.Has(expected));
  EXPECT_TRUE(fs::is_empty(dir_.path() / "cache/tmp"));
}

TEST_F(FilesTest, EvictsTheLeastUsedButNothingThatIsPinnedOrInUse) {
  std::vector<Blob> blobs;
  for (const char c : {'a', 'b', 'c'}) {
    Put(src_ / "x", std::string(1 << 20, c));
    BlobCache cache = Cache();
    const UniqueFd fd = OpenFile(src_ / "x", O_RDONLY).value();
    blobs.push_back(cache.AddFile(fd.get()).value());
  }
  {
    BlobCache cache = Cache();
    ASSERT_TRUE(cache.Pin(blobs[0], dir_.path() / "pinned").ok());
    ASSERT_TRUE(cache.Has(blobs[1])) << "used after the third";
    BlobCache other = Cache();
    EXPECT_EQ(BlobCache::Trim(std::move(other), 0).value(), -1) << "somebody uses the cache";
  }
  const auto left = BlobCache::Trim(Cache(), 5 << 19);
  ASSERT_TRUE(left.ok());
  EXPECT_LE(*left, 5 << 19);
  BlobCache cache = Cache();
  EXPECT_TRUE(cache.Has(blobs[0]));
  EXPECT_TRUE(cache.Has(blobs[1]));
  EXPECT_FALSE(cache.Has(blobs[2]));
}

TEST_F(FilesTest, TheKeyOfAnEnvironmentIsWhatItDependsOn) {
  PythonEnvSpec spec;
  spec.python = "/bin/sh";  // stands for an interpreter
  spec.requirements = src_ / "requirements.txt";
  spec.files_digest = "one";
  Put(spec.requirements, "numpy==1.26\n");
  const std::string plain = PythonEnvKey(spec).value();
  spec.files_digest = "two";
  EXPECT_EQ(PythonEnvKey(spec).value(), plain) << "no file of the job is named";
  Put(spec.requirements, "numpy==1.26\n-r more.txt\n");
  const std::string two = PythonEnvKey(spec).value();
  spec.files_digest = "three";
  EXPECT_NE(PythonEnvKey(spec).value(), two);
  spec.python = "no-such-python";
  EXPECT_EQ(PythonEnvKey(spec).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace shoal::host
