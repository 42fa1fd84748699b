#include "model/save_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <map>

#include "base/fault_injection.h"
#include "base/file.h"
#include "base/id.h"

namespace shoal::model {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using Files = std::map<std::string, std::string>;

class Save : public ::testing::Test {
 protected:
  ~Save() override { EXPECT_TRUE(SetFaults("").ok()); }

  // A model whose values all begin with `start`; large enough for several blocks.
  ModelContent Content(float start, bool text = true) {
    vectors_.dim = 100;
    vectors_.words.clear();
    vectors_.values.clear();
    for (int i = 0; i < 3000; ++i) {
      vectors_.words.push_back("word" + std::to_string(i));
      for (int j = 0; j < 100; ++j) vectors_.values.push_back(start + static_cast<float>(i * j));
    }
    ModelContent content;
    content.vectors = RowsOf(vectors_);
    content.count = [](uint64_t row) { return 5000 - row; };
    content.text = text;
    content.metadata["parameters"] = {{"dim", 100}, {"window", 5}};
    return content;
  }
  Files Snapshot(const fs::path& directory) const {
    Files files;
    for (const auto& entry : fs::directory_iterator(directory)) {
      files[entry.path().filename()] = ReadFile(entry.path(), 1 << 30).value();
    }
    return files;
  }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(temp_.path()), {}));
  }

  Vectors vectors_;
  TempDir temp_ = TempDir::Create("save-test").value();
  fs::path directory_ = temp_.path() / "model";
};

TEST_F(Save, WritesAWholeModel) {
  const SavedModel saved = SaveModel(directory_, Content(1)).value();
  const Files files = Snapshot(directory_);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(saved.digest, Sha256Hex(files.at("vectors.bin")));
  EXPECT_EQ(DigestOf(directory_).value(), saved.digest);
  EXPECT_THAT(files.at("vocab.txt"), ::testing::StartsWith("word0 5000\nword1 4999\n"));
  EXPECT_TRUE(ReadVectors(directory_ / "vectors.txt").value().values == vectors_.values);
  const json::object metadata = ReadModelMetadata(directory_).value();
  EXPECT_EQ(metadata.at("vectors").at("rows").to_number<int64_t>(), 3000);
  EXPECT_EQ(metadata.at("parameters").at("window").to_number<int64_t>(), 5);
  for (const char* name : {"vectors.bin", "vectors.txt", "vocab.txt"}) {
    EXPECT_EQ(metadata.at("files").at(name).at("sha256").as_string(), Sha256Hex(files.at(name)));
    EXPECT_EQ(metadata.at("files").at(name).at("bytes").to_number<size_t>(), files.at(name).size());
  }
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(Save, WrittenModelsCanBeRead) {
  ModelContent content = Content(1);
  vectors_.words[50] = "a\vb\fc\xe9";  // a word of a text in Latin-1, as the tokenizer gives it
  content.metadata["loss"] = std::numeric_limits<double>::infinity();
  content.metadata["data"] = {{"files", json::array{"caf\xe9.txt"}}};
  ASSERT_TRUE(SaveModel(directory_, content).ok());
  for (const char* name : {"vectors.bin", "vectors.txt"})
    EXPECT_EQ(ReadVectors(directory_ / name).value().words[50], vectors_.words[50]);
  const auto metadata = ReadModelMetadata(directory_);
  ASSERT_TRUE(metadata.ok()) << metadata.status().message();
  EXPECT_TRUE(metadata->at("loss").is_null());
  EXPECT_EQ(metadata->at("data").at("files").at(0).as_string(), "caf\xef\xbf\xbd.txt");
}

TEST_F(Save, ReplacesAModelAndRemovesItsOtherFiles) {
  ASSERT_TRUE(SaveModel(directory_, Content(1)).ok());
  ASSERT_TRUE(SaveModel(directory_.string() + "/", Content(2, false)).ok());
  EXPECT_EQ(Snapshot(directory_).size(), 3u);
  EXPECT_EQ(ReadVectors(directory_).value().values[0], 2);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(Save, FollowsASymbolicLinkAndMakesParents) {
  const fs::path real = temp_.path() / "a" / "b" / "real";
  ASSERT_TRUE(SaveModel(real, Content(1)).ok());
  fs::create_directory_symlink(real, directory_);
  ASSERT_TRUE(SaveModel(directory_, Content(2)).ok());
  EXPECT_TRUE(fs::is_symlink(directory_));
  EXPECT_EQ(ReadVectors(real).value().values[0], 2);
}

// The disk is full or fails at each write and each sync in turn: the old model stays unchanged, and
// no files are left over.
TEST_F(Save, TheOldModelSurvivesEveryDiskFailure) {
  for (const std::string point : {"file.write=ENOSPC", "file.write=EIO", "model.sync=EIO"}) {
    ASSERT_TRUE(SetFaults("").ok());
    ASSERT_TRUE(SaveModel(directory_, Content(1)).ok());
    const Files before = Snapshot(directory_);
    const ModelContent content = Content(2);
    int failures = 0;
    for (int pass = 1;; ++pass) {
      ASSERT_TRUE(SetFaults(point + "@" + std::to_string(pass)).ok());
      const auto saved = SaveModel(directory_, content);
      if (saved.ok()) break;
      ++failures;
      EXPECT_THAT(saved.status().message(), HasSubstr("cannot save the model to"));
      ASSERT_TRUE(Snapshot(directory_) == before) << point << " at pass " << pass;
      ASSERT_EQ(Entries(), 1u) << point << " at pass " << pass;
    }
    EXPECT_GE(failures, 4) << point;
    EXPECT_EQ(ReadVectors(directory_).value().values[0], 2);
  }
}

TEST_F(Save, AFailedFirstSaveLeavesNothing) {
  ASSERT_TRUE(SetFaults("file.write=ENOSPC@2").ok());
  EXPECT_EQ(SaveModel(directory_, Content(1)).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(Save, AKilledSaveLeavesTheOldModelAndTheNextOneTidiesUp) {
  ASSERT_TRUE(SaveModel(directory_, Content(1)).ok());
  const Files before = Snapshot(directory_);
  const ModelContent content = Content(2);
  for (const char* faults :
       {"file.write=kill@1", "file.write=kill@4", "model.sync=kill@3", "model.exchange=kill@1"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(SetFaults(faults).ok() && SaveModel(directory_, content).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << faults;
    EXPECT_TRUE(Snapshot(directory_) == before);
    EXPECT_EQ(Entries(), 2u);  // what the killed one was writing; the one before it is gone
  }
  ASSERT_TRUE(SaveModel(directory_, content).ok());
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(Save, ReplacesFileByFileWhereTheDirectoryCannotBeExchanged) {
  ASSERT_TRUE(SaveModel(directory_, Content(1)).ok());
  ASSERT_TRUE(SetFaults("model.exchange=EACCES@1").ok());
  ASSERT_TRUE(SaveModel(directory_, Content(2, false)).ok());
  EXPECT_EQ(Snapshot(directory_).size(), 3u);
  EXPECT_EQ(ReadVectors(directory_).value().values[0], 2);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(Save, NeverTouchesOtherPeoplesFiles) {
  const auto refused = [&](std::string_view why) {
    for (const Status& status :
         {CheckModelOutput(directory_), SaveModel(directory_, Content(1)).status()}) {
      EXPECT_EQ(status.code(), Code::kFailedPrecondition);
      EXPECT_THAT(status.message(), HasSubstr(why));
    }
  };
  ASSERT_TRUE(WriteFileAtomically(directory_, "a file").ok());
  refused("exists and is a file");
  fs::remove(directory_);
  fs::create_directory(directory_);
  EXPECT_TRUE(CheckModelOutput(directory_).ok());
  ASSERT_TRUE(WriteFileAtomically(directory_ / "thesis.tex", "years of work").ok());
  EXPECT_THAT(CheckModelOutput(directory_).message(), HasSubstr("holds 'thesis.tex'"));
  fs::rename(directory_ / "thesis.tex", directory_ / "vectors.bin");
  refused("vectors that Shoal did not write");
  EXPECT_EQ(ReadFile(directory_ / "vectors.bin", 100).value(), "years of work");
  fs::rename(directory_ / "vectors.bin", temp_.path() / "thesis.tex");
  fs::create_symlink(temp_.path() / "thesis.tex", directory_ / "vectors.bin");
  refused("holds 'vectors.bin'");
  EXPECT_EQ(ReadFile(temp_.path() / "thesis.tex", 100).value(), "years of work");
  fs::remove(directory_ / "vectors.bin");
  ASSERT_TRUE(WriteFileAtomically(directory_ / "vectors.bin", "years of work").ok());
  directory_ = directory_ / "vectors.bin" / "model";
  refused("cannot be made");
  EXPECT_EQ(CheckModelOutput("").code(), Code::kInvalidArgument);
}

// Files that appeared during the training stay, and do not prevent saving the model.
TEST_F(Save, AFinishedTrainingIsSavedBesideOtherPeoplesFiles) {
  fs::create_directory(directory_);
  ASSERT_TRUE(WriteFileAtomically(directory_ / ".nfs0000000000a1b2c300000001", "").ok());
  EXPECT_TRUE(CheckModelOutput(directory_).ok());  // a removed file that NFS keeps for a reader
  ASSERT_TRUE(WriteFileAtomically(directory_ / "notes", "mine").ok());
  for (const float start : {1.0f, 2.0f}) {
    ASSERT_TRUE(SaveModel(directory_, Content(start)).ok());
    EXPECT_EQ(ReadVectors(directory_).value().values[0], start);
    EXPECT_EQ(ReadFile(directory_ / "notes", 100).value(), "mine");
    EXPECT_EQ(Snapshot(directory_).size(), 6u);
  }
}

TEST_F(Save, AFinishedTrainingIsSavedElsewhereWhereItsPlaceIsTaken) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "a file").ok());
  for (const float start : {1.0f, 2.0f}) {
    const Status status = SaveModel(directory_, Content(start)).status();
    EXPECT_THAT(status.message(), HasSubstr("exists and is a file"));
    EXPECT_THAT(status.message(), HasSubstr("the model is in " + directory_.string() + ".saved"));
    EXPECT_EQ(ReadVectors(directory_.string() + ".saved").value().values[0], start);
  }
  EXPECT_EQ(ReadFile(directory_, 100).value(), "a file");
}

TEST_F(Save, KeepsTheAttributesOfReplacedFiles) {
  ASSERT_TRUE(SaveModel(directory_, Content(1)).ok());
  struct stat before {};
  ASSERT_EQ(::chmod(directory_.c_str(), 02750), 0);
  ASSERT_EQ(::chmod((directory_ / "vectors.bin").c_str(), 0600), 0);
  ASSERT_EQ(::stat(directory_.c_str(), &before), 0);
  for (const char* faults : {"", "model.exchange=EACCES@1"}) {
    ASSERT_TRUE(SetFaults(faults).ok());
    ASSERT_TRUE(SaveModel(directory_, Content(2)).ok());
    struct stat after {};
    ASSERT_EQ(::stat(directory_.c_str(), &after), 0);
    EXPECT_EQ(after.st_mode & 07777, 02750u) << faults;
    EXPECT_EQ(std::make_pair(after.st_uid, after.st_gid),
              std::make_pair(before.st_uid, before.st_gid));
    ASSERT_EQ(::stat((directory_ / "vectors.bin").c_str(), &after), 0);
    EXPECT_EQ(after.st_mode & 07777, 0600u) << faults;
  }
}

TEST_F(Save, CreatesTheTargetOfADanglingLink) {
  fs::create_directory_symlink("later", directory_);
  ASSERT_TRUE(CheckModelOutput(directory_).ok());
  ASSERT_TRUE(SaveModel(directory_, Content(1)).ok());
  EXPECT_TRUE(fs::is_symlink(directory_));
  EXPECT_EQ(ReadVectors(temp_.path() / "later").value().values[0], 1);
}

// A child process has the directory as its working directory, like the user's shell with `--output
// .`.
TEST_F(Save, AWorkingDirectoryIsNotExchanged) {
  ASSERT_TRUE(SaveModel(directory_, Content(1)).ok());
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = ::chdir(directory_.c_str()) == 0 ? 'y' : 'n';
    (void)!::write(ready[1], &byte, 1);
    ::close(done[1]);
    (void)!::read(done[0], &byte, 1);
    struct stat status {};
    ::_exit(::stat("model.json", &status) == 0 ? 0 : 1);
  }
  char byte = 'n';
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_TRUE(SaveModel(directory_, Content(2)).ok());
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadVectors(directory_).value().values[0], 2);
}

}  // namespace
}  // namespace shoal::model
