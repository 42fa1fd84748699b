// Files with several jobs, kinds that are not known, containers without a command.
#include <gtest/gtest.h>

#include <algorithm>

#include "import/import.h"

namespace shoal::importer {
namespace {

using Words = std::vector<std::string>;

Result<ImportedJob> Load(const std::string& text, const std::string& which = "") {
  TRY_ASSIGN(auto imported, ImportText(text, "f.yaml", which));
  if (!imported) return InvalidArgument("not a job of another system");
  return FinishImport(std::move(*imported), {});
}

job::Job JobOf(const std::string& text, const std::string& which = "") {
  auto loaded = Load(text, which);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? loaded->job : job::Job();
}

std::string ErrorOf(const std::string& text, const std::string& which = "") {
  return Load(text, which).status().message();
}

std::string PlainJob(const std::string& name) {
  return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name +
         "}\nspec: {template: {spec: {containers: [{name: c, command: [" + name + "]}]}}}\n";
}

TEST(Documents, OneOfSeveralJobsIsChosenByNameOrNumber) {
  const std::string file = PlainJob("first") +
                           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\n"
                           "---\n" +
                           PlainJob("second");
  EXPECT_NE(
      ErrorOf(file).find("got 2 jobs, expected one: choose with --document: 1 'first' (a Job of "
                         "Kubernetes, line 1), 3 'second'"),
      std::string::npos)
      << ErrorOf(file);
  EXPECT_EQ(JobOf(file, "first").roles[0].command, Words{"first"});
  EXPECT_EQ(JobOf(file, "3").roles[0].command, Words{"second"});
  EXPECT_NE(ErrorOf(file, "2").find("--document: got '2'"), std::string::npos);
  const std::vector<JobInFile> jobs = ListJobs(file);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[1].document, 3);
  EXPECT_EQ(jobs[1].name, "second");
  EXPECT_TRUE(ListJobs("command: [a]\n").empty());
}

TEST(Documents, AppsOfMarathonAreOneJob) {
  const job::Job job = JobOf(
      "{\"id\": \"/a/one\", \"cmd\": \"x\"}\n---\n"
      "{\"id\": \"/a/two\", \"cmd\": \"y\"}\n");
  ASSERT_EQ(job.roles.size(), 2u);
  EXPECT_EQ(job.roles[1].name, "two");
}

// The listing of a story about DC/OS: three documents, whose images start themselves.
TEST(Documents, AppsOfMarathonWithoutCommandsStartTheirImage) {
  std::string file;
  for (const char* role : {"scheduler", "server", "worker"}) {
    file += "{\"id\": \"/train/" + std::string(role) +
            "\", \"cmd\": null, \"env\": {\"DMLC_ROLE\": \"" + role +
            "\"}, \"container\": {\"docker\": {\"image\": \"train:1\"}}}\n---\n";
  }
  const job::Job job = JobOf(file);
  EXPECT_EQ(job.framework, job::Framework::kPsLite);
  EXPECT_EQ(job.image, "train:1");
  ASSERT_EQ(job.roles.size(), 3u);
  for (const job::Role& role : job.roles) EXPECT_TRUE(role.command.empty());
}

TEST(EntryPoint, ThatOfAnotherImageIsRefused) {
  const auto app = [](const std::string& id, const std::string& image) {
    return "{\"id\": \"/g/" + id + "\", \"container\": {\"docker\": {\"image\": \"" + image +
           "\"}}}\n---\n";
  };
  EXPECT_NE(ErrorOf(app("a", "one") + app("b", "two"))
                .find("the entry point of its image 'two' ran, and the job's image is 'one'"),
            std::string::npos);
  EXPECT_EQ(ErrorOf(app("a", "one") + app("b", "one")), "");
}

TEST(Documents, ScriptsOfOtherSystemsAreNamed) {
  EXPECT_NE(ErrorOf("#!/bin/bash\n#PBS -l select=2\ncd x\nmpirun ./a\n")
                .find("got a batch script of PBS, expected one of Slurm"),
            std::string::npos);
  EXPECT_NE(ErrorOf("#!/bin/sh\n#$ -N a\nif [ a = b ]; then c: [; fi\n").find("Grid Engine"),
            std::string::npos);
  EXPECT_NE(ErrorOf("#!/bin/sh\necho a\n").find("got a script without lines"), std::string::npos);
  const auto own = ImportText("#!/usr/bin/env -S shoal run\ncommand: [a]\n", "f.yaml");
  EXPECT_TRUE(own.ok() && !own->has_value());
}

TEST(Documents, ErrorsOfOneOfSeveralDocumentsAreSaid) {
  const std::string error = ErrorOf(
      "apiVersion: v1\nkind: Service\n---\napiVersion: batch.volcano.sh/v1alpha1\n"
      "kind: Job\nspec:\ntasks:\n- replicas: 1\ntemplate:\n- command: [a\n");
  EXPECT_NE(error.find("this is not valid YAML"), std::string::npos) << error;
  EXPECT_EQ(error.find("more than one YAML document"), std::string::npos) << error;
}

TEST(Documents, AnotherKindIsNoMisspelling) {
  const auto refused = [](const std::string& kind) {
    return ErrorOf("apiVersion: x/v1\nkind: " + kind + "\nspec: {}\n");
  };
  for (const char* kind : {"RayService", "XLAJob", "SparkConnect", "Pod", "PVC"})
    EXPECT_EQ(refused(kind).find("did you mean"), std::string::npos) << refused(kind);
  EXPECT_NE(refused("TFjob").find("did you mean 'TFJob'"), std::string::npos);
  EXPECT_NE(refused("PyTorhcJob").find("did you mean 'PyTorchJob'"), std::string::npos);
}

TEST(EntryPoint, ItsArgumentsAreKept) {
  const auto text = [](const std::string& image) {
    return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: n}\nspec: {template: {spec: "
           "{containers: "
           "[{name: c, " +
           image + "args: [--lr, $(LR)], env: [{name: LR, value: '0.1'}]}]}}}\n";
  };
  const auto loaded = Load(text("image: 'train:3', "));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->job.image, "train:3");
  EXPECT_EQ(loaded->job.roles[0].command, Words());
  EXPECT_EQ(loaded->job.roles[0].args, (Words{"--lr", "0.1"}));
  EXPECT_TRUE(std::ranges::any_of(loaded->losses, [](const ImportLoss& loss) {
    return loss.engine == "docker" &&
           loss.sentence.find("own entry point runs") != std::string::npos;
  }));
  EXPECT_NE(ErrorOf(text("")).find("no command and no image"), std::string::npos);
}

}  // namespace
}  // namespace shoal::importer
