// tests/golden/job: each NAME.yaml with the errors it must give (NAME.error) or the plan it makes
// (NAME.plan), and the pages that are made from the table of fields. SHOAL_REGENERATE=1 writes the
// expected files anew; read the difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "job/execution/plan.h"
#include "job/file/fields.h"
#include "job/file/parse.h"
#include "job/file/reference_page.h"
#include "job/spec/json.h"

namespace shoal::job {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SHOAL_SOURCE_DIR;

bool Regenerate() { return std::getenv("SHOAL_REGENERATE") != nullptr; }

void ExpectFile(const fs::path& path, const std::string& text) {
  if (Regenerate()) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    return;
  }
  const auto there = ReadFile(path, size_t{1} << 20);
  ASSERT_TRUE(there.ok()) << there.status().message() << "\nexpected:\n" << text;
  EXPECT_EQ(*there, text) << path << " differs; SHOAL_REGENERATE=1 job_test writes it anew";
}

TEST(Golden, JobFiles) {
  int good = 0;
  int bad = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "tests/golden/job")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto text = ReadFile(entry.path(), kMaxFileBytes);
    ASSERT_TRUE(text.ok());
    const auto job = ParseJob(*text, entry.path().filename().string());
    fs::path expected = entry.path();
    if (job.ok()) {
      ++good;
      const auto plan = MakePlan(*job);
      ASSERT_TRUE(plan.ok());
      ExpectFile(expected.replace_extension(".plan"), PrintPlan(*job, *plan));
      const auto again = FromJsonText(ToJsonText(*job));
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_EQ(*again, *job);
    } else {
      ++bad;
      EXPECT_EQ(job.status().code(), Code::kInvalidArgument);
      ExpectFile(expected.replace_extension(".error"), job.status().message() + "\n");
    }
  }
  EXPECT_GE(good, 4);
  EXPECT_GE(bad, 15);
}

TEST(Golden, Examples) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "examples")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const auto job = ParseJobFile(entry.path().string());
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_TRUE(MakePlan(*job).ok());
  }
  EXPECT_GE(files, 2);
  const auto vectors = ParseJobFile((kRoot / "examples/word2vec.yaml").string());
  ASSERT_TRUE(vectors.ok());
  EXPECT_EQ(vectors->FindRole("server")->follows, "worker");
  EXPECT_EQ(vectors->FindRole("server")->replicas, 2);
  EXPECT_EQ(vectors->learn.at("dim").text, "100");
}

TEST(Reference, PageAndSchemaAreThoseOfTheTable) {
  ExpectFile(kRoot / "docs/job-file.md", ReferencePage());
  ExpectFile(kRoot / "docs/job.schema.json", ToPrettyText(JobSchema()) + "\n");
}

TEST(Reference, ExamplesOnThePageParse) {
  const std::string page = ReferencePage();
  int blocks = 0;
  for (size_t at = page.find("```yaml\n"); at != std::string::npos;
       at = page.find("```yaml\n", at + 8)) {
    const size_t end = page.find("\n```", at);
    ASSERT_NE(end, std::string::npos);
    const auto job = ParseJob(page.substr(at + 8, end - at - 7), "page.yaml");
    EXPECT_TRUE(job.ok()) << job.status().message();
    ++blocks;
  }
  EXPECT_EQ(blocks, 4);
}

TEST(Reference, EveryFieldIsComplete) {
  for (const Field& field : Fields()) {
    const bool section = field.type == Type::kSection || field.type == Type::kSections;
    EXPECT_EQ(field.apply == nullptr, section) << field.path;
    EXPECT_TRUE(field.doc.ends_with(".")) << field.path;
    EXPECT_FALSE(field.fallback.empty()) << field.path;
    EXPECT_EQ(FindField(field.path), &field) << "twice in the table: " << field.path;
    if (field.type == Type::kChoice) {
      EXPECT_FALSE(field.choices.empty()) << field.path;
    }
    const size_t dot = field.path.rfind('.');
    std::string_view parent = field.path.substr(0, dot == std::string_view::npos ? 0 : dot);
    if (parent.ends_with(".*")) parent.remove_suffix(2);
    if (!parent.empty()) {
      EXPECT_NE(FindField(parent), nullptr) << field.path;
    }
  }
}

}  // namespace
}  // namespace shoal::job
