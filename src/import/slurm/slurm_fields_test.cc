// Every option of sbatch (fields/slurm.tsv), put into a small script: the job differs by it, or a
// comment names it, or the import is refused, as the table says.
#include <gtest/gtest.h>

#include <algorithm>

#include "import/conversion/foreign_fields.h"
#include "import/import.h"

namespace shoal::importer {
namespace {

struct Outcome {
  Status status;
  job::Job job;
  std::vector<ImportLoss> losses;
};

Outcome ImportScript(const std::string& script) {
  auto imported = ImportText(script, "f.sh");
  if (!imported.ok()) return {imported.status(), {}, {}};
  auto finished = FinishImport(std::move(**imported), {});
  if (!finished.ok()) return {finished.status(), {}, {}};
  return {Status(), std::move(finished->job), std::move(finished->losses)};
}

std::string OptionOf(const ForeignField& field) {
  std::string text = "--" + std::string(field.name);
  if (!field.type.starts_with("text")) return text;
  return text + "=" + std::string(field.example.empty() ? "value" : field.example);
}

// A script with and without the option.
class Pair {
 public:
  Pair(const std::string& lines, const std::string& command, const ForeignField& field)
      : field_(field),
        without_(ImportScript("#!/bin/bash\n" + lines + command)),
        with_(
            ImportScript("#!/bin/bash\n" + lines + "#SBATCH " + OptionOf(field) + "\n" + command)) {
    EXPECT_TRUE(without_.status.ok()) << without_.status.message();
  }

  bool refused() const {
    return !with_.status.ok() &&
           with_.status.message().find("--" + std::string(field_.name)) != std::string::npos;
  }
  // Without what the engine slurm alone heeds.
  bool Differs() const { return with_.status.ok() && !(with_.job == without_.job); }
  const ImportLoss* told() const {
    for (const ImportLoss& loss : with_.losses) {
      const bool names = loss.field == "--" + std::string(field_.name) ||
                         loss.sentence.find("--" + std::string(field_.name)) != std::string::npos;
      if (names) return &loss;
    }
    return nullptr;
  }
  bool lost() const { return !refused() && !Differs() && told() == nullptr; }

 private:
  const ForeignField& field_;
  const Outcome without_;
  const Outcome with_;
};

TEST(SlurmFields, AreAllHonouredOrTold) {
  int checked = 0;
  for (const ForeignField& field : FindFields("Sbatch")) {
    SCOPED_TRACE(field.name);
    const Pair pairs[] = {{"#SBATCH -N 2 --gpus=2\n", "srun ./a\n", field},
                          {"#SBATCH -J small\n", "./a\n", field}};
    ++checked;
    const bool differs = std::ranges::any_of(pairs, [](const Pair& one) { return one.Differs(); });
    EXPECT_EQ(differs, field.verdict == FieldSupport::kHonoured);
    if (field.verdict == FieldSupport::kHonoured && field.engine.empty()) continue;
    for (const Pair& one : pairs) {
      ASSERT_NE(one.told(), nullptr) << (one.lost() ? "is lost" : "is not told");
      const bool minor = field.verdict == FieldSupport::kNoted || !field.warned_elsewhere;
      EXPECT_EQ(one.told()->minor, minor) << one.told()->sentence;
    }
  }
  EXPECT_GT(checked, 110);
}

}  // namespace
}  // namespace shoal::importer
