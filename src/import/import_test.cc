// tests/golden/import and examples/import: each file with the job file that it becomes (NAME.job)
// or the errors it gives (NAME.error). SHOAL_REGENERATE=1 writes the expected files anew; read the
// difference before committing it.
#include "import/import.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "import/test_imports.h"
#include "job/file/parse.h"
#include "job/file/write_yaml.h"

namespace shoal::importer {
namespace {

namespace fs = std::filesystem;
using job::RestartWhen;

const fs::path kRoot = SHOAL_SOURCE_DIR;
const fs::path kGolden = kRoot / "tests/golden/import";

void ExpectFile(const fs::path& path, const std::string& text) {
  if (std::getenv("SHOAL_REGENERATE") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    return;
  }
  const auto there = ReadFile(path, size_t{1} << 20);
  ASSERT_TRUE(there.ok()) << there.status().message() << "\nexpected:\n" << text;
  EXPECT_EQ(*there, text) << path << " differs; SHOAL_REGENERATE=1 import_test writes it anew";
}

std::string Name(const fs::path& path) {
  return path.stem().string() + (path.extension() == ".json" ? "-json" : "");
}

void CheckOne(const fs::path& path, int* good, int* bad) {
  SCOPED_TRACE(path);
  const auto text = ReadFile(path, job::kMaxFileBytes);
  ASSERT_TRUE(text.ok());
  auto imported = ImportText(*text, path.filename().string());
  Status status = imported.status();
  if (imported.ok()) {
    ASSERT_TRUE(imported->has_value());
    auto finished = FinishImport(**imported, {});
    status = finished.status();
    if (finished.ok()) {
      ++*good;
      const std::string written = WriteImported(*finished);
      ExpectFile(kGolden / (Name(path) + ".job"), written);
      // The text is the job, comments and all.
      const auto again = job::ParseJob(written, path.filename().string());
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_EQ(*again, finished->job);
      for (const ImportLoss& loss : finished->losses) {
        EXPECT_NE(loss.sentence.find(' '), std::string::npos);
      }
      return;
    }
  }
  ++*bad;
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  ExpectFile(kGolden / (Name(path) + ".error"), status.message() + "\n");
}

TEST(Import, Golden) {
  int good = 0;
  int bad = 0;
  for (const fs::path& folder : {kGolden, kRoot / "examples/import"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const fs::path kind = entry.path().extension();
      if (kind == ".yaml" || kind == ".json" || kind == ".sh") CheckOne(entry.path(), &good, &bad);
    }
  }
  EXPECT_GE(good, 10);
  EXPECT_GE(bad, 7);
}

TEST(Import, OwnJobFilesAreNoneOfIt) {
  for (const char* name :
       {"examples/hello.yaml", "examples/word2vec.yaml", "tests/golden/job/all-fields.yaml",
        "tests/golden/job/empty.yaml", "tests/golden/job/tab.yaml",
        "tests/golden/job/top-is-list.yaml", "tests/golden/job/two-documents.yaml"}) {
    const auto text = ReadFile(kRoot / name, job::kMaxFileBytes);
    ASSERT_TRUE(text.ok());
    const auto imported = ImportText(*text, name);
    ASSERT_TRUE(imported.ok()) << name << ": " << imported.status().message();
    EXPECT_FALSE(imported->has_value()) << name;
  }
}

TEST(Import, MergeKeysGiveMapsTheFieldsTheyLack) {
  const auto job = Import(
      "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec:\n"
      "  tfReplicaSpecs:\n"
      "    Worker: &role\n"
      "      replicas: 3\n"
      "      restartPolicy: OnFailure\n"
      "      template: {spec: {containers: [{name: tensorflow, command: [a]}]}}\n"
      "    PS:\n"
      "      <<: *role\n"
      "      replicas: 2\n"
      "    Evaluator:\n"
      "      <<: [{replicas: 1}, *role]\n");
  EXPECT_EQ(job.FindRole("ps")->replicas, 2);
  EXPECT_EQ(job.FindRole("ps")->restart.when, RestartWhen::kAlways);
  EXPECT_EQ(job.FindRole("evaluator")->replicas, 1);
  EXPECT_EQ(job.FindRole("evaluator")->command, std::vector<std::string>{"a"});
  const auto wrong =
      ImportText("apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {<<: text}\n", "f.yaml");
  EXPECT_TRUE(!wrong.ok() || !wrong->has_value());  // ParseJob says what is wrong with it
}

TEST(Import, FieldsOfLaterVersionsAreToldAndMisspeltOnesRefused) {
  const auto with = [](const std::string& pod, const std::string& container) {
    return "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {tfReplicaSpecs: "
           "{Worker: {template: {spec: {" +
           pod + "containers: [{name: tensorflow, command: [a]" + container + "}]}}}}}\n";
  };
  for (const std::string& text :
       {with("hostnameOverride: h, ", ""), with("restartPolicyOfTomorrow: {}, ", ""),
        with("", ", restartPolicyRules: [{action: Restart}]"),
        with("", ", resources: {limits: {hugepages-32Mi: 64Mi}}")}) {
    const auto imported = ImportText(text, "f.yaml");
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    const auto& losses = (*imported)->losses;
    EXPECT_TRUE(std::any_of(losses.begin(), losses.end(),
                            [](const ImportLoss& loss) { return !loss.minor; }));
  }
  EXPECT_FALSE(ImportText(with("hostNetwrk: true, ", ""), "f.yaml").ok());
}

}  // namespace
}  // namespace shoal::importer
