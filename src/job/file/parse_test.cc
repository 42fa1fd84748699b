#include "job/file/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>

#include "base/file.h"
#include "job/spec/cluster_reference.h"
#include "job/spec/json.h"
#include "job/text/errors.h"
#include "job/text/units.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

namespace shoal::job {
namespace {

using std::chrono::milliseconds;

std::string ErrorOf(std::string_view text, const std::vector<std::string>& overrides = {}) {
  const auto job = ParseJob(text, "job.yaml", overrides);
  return job.ok() ? "parsed" : job.status().message();
}

constexpr std::string_view kSmall = "command: [echo, hello]\nroles:\n  task: {replicas: 4}\n";

TEST(Parse, TheSmallestJob) {
  const auto job = ParseJob(kSmall, "dir/hello.yaml");
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->name, "hello");
  EXPECT_EQ(job->framework, Framework::kGeneric);
  ASSERT_EQ(job->roles.size(), 1u);
  EXPECT_EQ(job->roles[0].replicas, 4);
  EXPECT_EQ(job->success.roles, std::vector<std::string>{"task"});
  EXPECT_EQ(job->limits.stop_grace, milliseconds(10'000));
}

TEST(Parse, UsersOfContainersAreNumbers) {
  const std::string small(kSmall);
  for (const char* user : {"nobody", "'1000:'", "':1000'", "-1", "1:x", "4294967295"}) {
    EXPECT_NE(ErrorOf(small + "container: {user: " + user + "}\n")
                  .find("job.yaml:4:19: container.user: "),
              std::string::npos)
        << user;
  }
  for (const char* user : {"1000", "'1000:100'", "'0:0'"})
    EXPECT_EQ(ErrorOf(small + "container: {user: " + user + "}\n"), "parsed") << user;
}

TEST(Parse, OptionsOfSlurmThatBreakAJobAreRefused) {
  const std::string small(kSmall);
  for (const char* option : {"--array=0-3", "--arr=2", "--wrap=ls", "--test-only", "--chdir=/tmp",
                             "licenses=a", "'--mail-user=a b'", "--"}) {
    EXPECT_NE(ErrorOf(small + "slurm: {options: [" + option + "]}\n").find("slurm.options: got "),
              std::string::npos)
        << option;
  }
  EXPECT_NE(ErrorOf("command: [a]\nroles:\n  task: {slurm: {options: [--array=2]}}\n")
                .find("roles.task.slurm.options: got '--array=2'"),
            std::string::npos);
  EXPECT_EQ(ErrorOf(small + "slurm: {options: [--licenses=a, --comment=b, --wait-all-nodes=1]}\n"),
            "parsed");
}

TEST(Parse, EveryFieldArrivesWhereItBelongs) {
  const auto text = ReadFile(SHOAL_SOURCE_DIR "/tests/golden/job/all-fields.yaml", 100'000);
  ASSERT_TRUE(text.ok());
  const auto parsed = ParseJob(*text, "job.yaml");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Job& job = *parsed;
  EXPECT_EQ(job.priority, -5);
  EXPECT_EQ(job.env.at("OMP_NUM_THREADS"), "1");
  ASSERT_EQ(job.data.size(), 2u);
  EXPECT_EQ(job.data[1].sources, (std::vector<std::string>{"a.csv", "b.csv"}));
  EXPECT_EQ(job.data[1].shard_by, "worker");
  const Role& worker = *job.FindRole("worker");
  EXPECT_EQ(worker.min_replicas, 2);
  EXPECT_EQ(worker.resources.cpu, 1.5);
  EXPECT_EQ(worker.resources.memory_bytes, int64_t{512} << 20);
  EXPECT_EQ(worker.restart.backoff_max, milliseconds(60'000));
  EXPECT_EQ(job.FindRole("board")->restart.when, RestartWhen::kNever);
  EXPECT_EQ(job.FindRole("board")->ports, (std::vector<Port>{{"http", true}}));
  EXPECT_EQ(job.success.rule, SuccessRule::kCount);
  EXPECT_EQ(job.success.count, 3);
  EXPECT_EQ(job.limits.deadline, milliseconds(4 * 3'600'000));
  EXPECT_EQ(job.on_controller_loss, OnControllerLoss::kStop);
  EXPECT_EQ(job.outputs.at("model"), "vectors");
}

TEST(Parse, LearnValuesKeepTextAndPlace) {
  const auto job =
      ParseJob("framework: shoal\nlearn:\n  algorithm: word2vec\n  alpha: 0.050\n  data: [a, b]\n",
               "j.yaml", {"learn.dim=200"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->learn.at("alpha"), (LearnValue{"0.050", 4, 10}));
  EXPECT_EQ(job->learn.at("data").text, "a b");
  EXPECT_EQ(job->learn.at("dim"), (LearnValue{"200", 0, 0}));
}

TEST(Parse, ScopeIsTheFrameworks) {
  const auto job = ParseJob(
      "framework: pytorch\ncommand: [a]\nroles: {w: 2, v: {restart: {scope: task}}}\n", "j");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->FindRole("w")->restart.scope, RestartScope::kJob);
  EXPECT_EQ(job->FindRole("v")->restart.scope, RestartScope::kTask);
}

TEST(Parse, HopelessFilesGetOneSentence) {
  EXPECT_EQ(ErrorOf(""),
            "job.yaml:1:1: the file is empty, expected a job: at least a command, or framework "
            "shoal with learn");
  EXPECT_EQ(ErrorOf("\x7f"
                    "ELF\x02"),
            "job.yaml:1:1: got the control character 0x7f, expected text; this looks like a binary "
            "file");
  EXPECT_EQ(ErrorOf("name: caf\xe9\n"),
            "job.yaml:1:10: got the byte 0xe9, which is not UTF-8; save the file as UTF-8");
  EXPECT_NE(ErrorOf("\xff\xfe"
                    "n")
                .find("UTF-16"),
            std::string::npos);
  EXPECT_NE(ErrorOf(std::string(kMaxFileBytes + 1, 'a')).find("more than 1 MiB"),
            std::string::npos);
  EXPECT_EQ(ErrorOf("command: [a]\nroles:\n\tworker: 4\n"),
            "job.yaml:3:1: got a tab in the indentation, expected spaces");
}

TEST(Parse, NestingAndAliasesAreBounded) {
  EXPECT_NE(ErrorOf(std::string(200'000, '[')).find("job.yaml:1:"), std::string::npos);
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += before + (k < 9 ? "," : "]\n");
  }
  EXPECT_NE(ErrorOf(bomb).find("aliases expanded"), std::string::npos);
  // Few values, but large ones.
  std::string large = "a: &a " + std::string(100'000, 'x') + "\nb: [";
  for (int i = 0; i < 1000; ++i) large += "*a, ";
  EXPECT_NE(ErrorOf(large + "]\n").find("bytes of values, aliases expanded"), std::string::npos);
  std::string deep = "a: &a [x]\n";
  for (int i = 0; i < 100; ++i) {
    deep += "b" + std::to_string(i) + ": &b" + std::to_string(i) + " [*" +
            (i == 0 ? "a" : "b" + std::to_string(i - 1)) + "]\n";
  }
  EXPECT_NE(ErrorOf(deep).find("deep, expected fewer levels"), std::string::npos);
}

TEST(Parse, AtMostTenErrorsInTheFilesOrder) {
  std::string text = "command: [a]\nroles:\n";
  for (int i = 0; i < 15; ++i) text += "  r" + std::to_string(i) + ": {replicas: -1}\n";
  const std::string error = ErrorOf(text);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 10);
  EXPECT_EQ(error.find("job.yaml:3:18: roles.r0.replicas: got '-1', expected an integer from 0 to "
                       "100000\njob.yaml:4:18:"),
            0u);
  EXPECT_NE(error.find("job.yaml: and 5 more errors"), std::string::npos);
}

TEST(Parse, MisspeltFieldsAreGuessed) {
  EXPECT_EQ(ErrorOf("command: [a]\nroles:\n  w: {replica: 2}\n"),
            "job.yaml:3:7: roles.w: got the unknown field 'replica'; did you mean 'replicas'?");
  EXPECT_EQ(Nearest("repliacs", {"replicas", "resources"}), "replicas");
  EXPECT_EQ(Nearest("mem", {"cpu", "memory", "gpu"}), "memory");
  EXPECT_EQ(Nearest("xyzzy", {"cpu", "memory", "gpu"}), "");
  EXPECT_EQ(Nearest("", {"cpu"}), "");
}

TEST(Set, ChangesWhatTheFileSays) {
  const auto job = ParseJob(kSmall, "j.yaml",
                            {"roles.task.replicas=8", "env.A=b=c", "env.B=", "name=other",
                             "command=[sh, -c, \"exit 3\"]", "roles.task.resources.memory=2Gi"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->roles[0].replicas, 8);
  EXPECT_EQ(job->env, (std::map<std::string, std::string>{{"A", "b=c"}, {"B", ""}}));
  EXPECT_EQ(job->name, "other");
  EXPECT_EQ(job->command, (std::vector<std::string>{"sh", "-c", "exit 3"}));
  EXPECT_EQ(job->roles[0].resources.memory_bytes, int64_t{2} << 30);
}

TEST(Set, WorksOnShorthandsAndPresets) {
  const auto job = ParseJob("framework: shoal\nlearn: {algorithm: word2vec}\nroles: {worker: 4}\n",
                            "j", {"roles.server.replicas=2", "roles.worker.processes=2"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->FindRole("server")->replicas, 2);
  EXPECT_EQ(job->FindRole("worker")->replicas, 4);
  EXPECT_EQ(job->FindRole("worker")->processes, 2);
  EXPECT_TRUE(ParseJob("command: [a]", "j", {"roles.worker=3"}).ok());
}

TEST(Set, ErrorsNameTheArgument) {
  EXPECT_EQ(ErrorOf(kSmall, {"roles.task.replicas=-4"}),
            "--set roles.task.replicas=-4: roles.task.replicas: got '-4', expected an integer from "
            "0 to 100000");
  EXPECT_EQ(ErrorOf(kSmall, {"roles.taks.replicas=3"}),
            "--set roles.taks.replicas=3: roles: got the unknown role 'taks', expected one of the "
            "file's: task; did you mean 'task'?");
  EXPECT_EQ(ErrorOf(kSmall, {"role.task.replicas=3"}),
            "--set role.task.replicas=3: got the unknown field 'role'; did you mean 'roles'?");
  EXPECT_EQ(ErrorOf(kSmall, {"command.x=3"}),
            "--set command.x=3: command: this is a list in the job, expected a section of fields");
  for (const char* bad : {"", "=", "x", "a..b=1", ".a=1", "a.=1"}) {
    EXPECT_EQ(ErrorOf(kSmall, {bad}), "--set " + std::string(bad) +
                                          ": expected PATH=VALUE, such as roles.worker.replicas=8");
  }
  EXPECT_NE(ErrorOf(kSmall, {"command=[a"}).find("--set command=[a: this is not valid YAML"),
            std::string::npos);
  EXPECT_NE(ErrorOf(kSmall, {"name=\xff"}).find("expected a text of UTF-8"), std::string::npos);
  EXPECT_EQ(ErrorOf(kSmall, {"env.1TOKEN=hunter2"}).find("hunter2"), std::string::npos);
}

TEST(ParseFile, MissingUnreadableAndHugeFilesAreWrongUsage) {
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string missing = (dir->path() / "nope.yaml").string();
  EXPECT_EQ(ParseJobFile(missing).status().code(), Code::kInvalidArgument);
  EXPECT_NE(ParseJobFile(missing).status().message().find(missing), std::string::npos);
  EXPECT_NE(ParseJobFile(dir->path().string()).status().message().find("got a directory"),
            std::string::npos);
  std::ofstream(dir->path() / "huge.yaml") << std::string(3 << 20, 'a');
  EXPECT_NE(ParseJobFile((dir->path() / "huge.yaml").string()).status().message().find("1 MiB"),
            std::string::npos);
}

TEST(ResolvePaths, LeavesUrlsAlone) {
  Job job;
  job.data = {{"train", {"a.txt", "/b", "s3://c/d", "../e*"}, "", {}, "text", ""}};
  job.outputs = {{"model", "out"}};
  job.store = "file:///x";
  ResolvePaths({}, "/home/me", "/elsewhere", &job);
  EXPECT_EQ(job.data[0].sources,
            (std::vector<std::string>{"/home/me/a.txt", "/b", "s3://c/d", "/home/e*"}));
  EXPECT_EQ(job.outputs.at("model"), "/home/me/out");
  EXPECT_EQ(job.store, "file:///x");
  EXPECT_EQ(job.files, "");
}

TEST(ResolvePaths, WhatSetGaveIsSeenFromWhereTheCommandIs) {
  FieldLocations places;
  const auto parsed = ParseJob(
      "framework: shoal\nlearn: {algorithm: word2vec}\ndata: {train: a.txt}\n"
      "outputs: {model: out}\ncontainer: {volumes: ['in:/in']}\nfiles: src\n"
      "marathon: {authorities: ca.pem}\n",
      "job.yaml", {"data.train=b.txt", "files=code"}, &places);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  Job job = *parsed;
  ResolvePaths(places, "/of/file", "/of/command", &job);
  EXPECT_EQ(job.data[0].sources, std::vector<std::string>{"/of/command/b.txt"});
  EXPECT_EQ(job.files, "/of/command/code");
  EXPECT_EQ(job.outputs.at("model"), "/of/file/out");
  EXPECT_EQ(job.container.volumes, std::vector<std::string>{"/of/file/in:/in"});
  EXPECT_EQ(job.marathon.authorities, "/of/file/ca.pem");
}

TEST(FieldLocations, SayWhereFieldsStood) {
  FieldLocations places;
  const auto job = ParseJob("command: [a]\noutputs:\n  model: out\nqueue: q\n", "job.yaml",
                            {"priority=3"}, &places);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(places.Prefix("job.yaml", "outputs.model"), "job.yaml:3:10: ");
  EXPECT_EQ(places.Prefix("job.yaml", "outputs.other"), "job.yaml:3:3: ");
  EXPECT_EQ(places.Prefix("job.yaml", "data"), "job.yaml:1:1: ");
  EXPECT_EQ(places.Prefix("job.yaml", "priority"), "--set priority=3: ");
  EXPECT_EQ(FieldLocations().Prefix("job.yaml", "data"), "");
}

TEST(Units, SizesAndTimes) {
  EXPECT_EQ(ParseSize("64Mi"), int64_t{64} << 20);
  EXPECT_EQ(ParseSize("2Gi"), int64_t{2} << 30);
  EXPECT_EQ(ParseSize("512M"), 512'000'000);
  EXPECT_EQ(ParseSize("1.5G"), 1'500'000'000);
  EXPECT_EQ(ParseSize("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(ParseSize("77"), 77);
  for (const char* bad :
       {"", "Mi", "-1", "1 Gi", "1gi", "1Q", "1.2.3G", "99999999T", "1e3", "Ki1"}) {
    EXPECT_EQ(ParseSize(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseDurationMs("100ms"), 100);
  EXPECT_EQ(ParseDurationMs("1h30m"), 5'400'000);
  EXPECT_EQ(ParseDurationMs("1.5s"), 1500);
  EXPECT_EQ(ParseDurationMs("0"), 0);
  for (const char* bad : {"", "60", "s", "1x", "-1s", "1s 2s", "9999999d", "1h30"}) {
    EXPECT_EQ(ParseDurationMs(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseNumber("nan"), std::nullopt);
  EXPECT_EQ(ParseNumber("0x10"), std::nullopt);
  EXPECT_EQ(ParseNumber(".5"), 0.5);
}

// A job file with random bytes changed, parts doubled and cut never gets the parser to crash or to
// make a Job that its JSON does not carry.
TEST(Fuzz, MutatedFilesNeverHarm) {
  std::vector<std::string> seeds;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHOAL_SOURCE_DIR "/tests/golden/job")) {
    if (entry.path().extension() != ".yaml") continue;
    seeds.push_back(*ReadFile(entry.path(), 100'000));
    const auto& seed = seeds.back();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(seed.data()), seed.size());
  }
  ASSERT_GT(seeds.size(), 10u);
  EXPECT_TRUE(rc::check([&] {
    std::string text = *rc::gen::elementOf(seeds);
    const auto changes = *rc::gen::container<std::vector<std::tuple<size_t, uint8_t, char>>>(
        rc::gen::arbitrary<std::tuple<size_t, uint8_t, char>>());
    for (const auto& [at, kind, byte] : changes) {
      if (text.empty()) break;
      const size_t i = at % text.size();
      if (kind % 4 == 0) text[i] = "&*[]{}:,\n\t -'\"|>!%?#"[static_cast<uint8_t>(byte) % 20];
      if (kind % 4 == 1) text.erase(i, 1 + static_cast<uint8_t>(byte) % 8);
      if (kind % 4 == 2) text.insert(i, text.substr(i / 2, static_cast<uint8_t>(byte)));
      if (kind % 4 == 3) text[i] = byte;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }));
}

TEST(Variables, WrongReferencesAreNamedWithTheirPlace) {
  const auto message = [](const std::string& value) {
    return ParseJob("command: [a]\nroles: {ps: 1, worker: 2}\nenv: {A: '" + value + "'}\n",
                    "j.yaml")
        .status()
        .message();
  };
  const std::string at = "j.yaml:3:6: env.A: ";
  EXPECT_EQ(message("{{shoal.hosts.workers}}"),
            at + "got 'workers', expected one of the roles ps, worker; did you mean 'worker'?");
  EXPECT_EQ(message("{{shoal.host.ps}}"),
            at + "got '{{shoal.host.ps}}', expected it without a role, as {{shoal.host}}");
  EXPECT_EQ(message("{{shoal.hosts}}"),
            at + "got '{{shoal.hosts}}', expected the name of a role after it, such as "
                 "{{shoal.hosts.worker}}");
  EXPECT_EQ(message("{{shoal.indx}}"),
            at + "got '{{shoal.indx}}', expected one of index, host, hosts.ROLE, addresses.ROLE, "
                 "count.ROLE, secret.NAME, secret_file.NAME, braces; did you mean 'index'?");
  EXPECT_EQ(message("{{shoal.index"),
            at + "got '{{shoal.' without its end, expected '}}' after it");
  EXPECT_EQ(message("{{shoal.addresses.ps}}"),
            at + "got the addresses of role 'ps', which has no port, expected a role with 'ports'");
}

TEST(Variables, SecretsAreReferences) {
  const auto parse = [](const std::string& value) {
    return ParseJob("command: [a]\nroles: {worker: 1}\nenv: {A: " + value + "}\n", "j.yaml");
  };
  const auto value = [&](const std::string& text) { return parse(text).value().env.at("A"); };
  EXPECT_EQ(value("{secret: db}"), "{{shoal.secret.db}}");
  EXPECT_EQ(value("{secret_file: Key_1.json}"), "{{shoal.secret_file.Key_1.json}}");
  EXPECT_EQ(value("{secret: 42}"), "{{shoal.secret.42}}");
  EXPECT_EQ(SecretsOf(*parse("'a{{shoal.secret.x}}b{{shoal.secret_file.y}}{{shoal.index}}'")),
            (std::map<std::string, std::string>{{"x", "env.A"}, {"y", "env.A"}}));
  EXPECT_TRUE(SecretsOf(*parse("'{{shoal.braces}}shoal.secret.x}}'")).empty());

  const auto message = [&](const std::string& text) { return parse(text).status().message(); };
  EXPECT_EQ(message("{secret: a/b}"),
            "j.yaml:3:19: env.A: got 'a/b', expected a secret's name of letters, digits, '-', '_' "
            "and '.'");
  EXPECT_EQ(
      message("{secret: a, secret_file: b}"),
      "j.yaml:3:10: env.A: got a section of fields, expected a text, a number, {secret: NAME} or "
      "{secret_file: NAME}");
  EXPECT_EQ(message("[a]"), "j.yaml:3:10: env.A: got a list, expected a text or a number");
  EXPECT_EQ(message("'{{shoal.secret}}'"),
            "j.yaml:3:6: env.A: got '{{shoal.secret}}', expected the name of a secret after it, "
            "such as {{shoal.secret.db-password}}");
  EXPECT_EQ(message("'{{shoal.secret.-a}}'"),
            "j.yaml:3:6: env.A: got '{{shoal.secret.-a}}', expected a secret's name of letters, "
            "digits, '-', '_' and '.'");
}

TEST(Variables, MarksOfSecretsAreFound) {
  const std::string text =
      "a" + SecretMark("db", false) + SecretMark("k.1", true) + "@shoal-secret:";
  EXPECT_EQ(MarksAsReferences(text), "a{{shoal.secret.db}}{{shoal.secret_file.k.1}}@shoal-secret:");
  EXPECT_FALSE(FindSecretMark("@shoal-secret:a b@ @shoal-secret:@ @shoal-secrets:a@", 0));
  const auto found = FindSecretMark("@shoal-secret:" + SecretMark("x", true), 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, 14u);
  EXPECT_EQ(found->name, "x");
  EXPECT_TRUE(found->as_file);
}

TEST(Parse, Containers) {
  const std::string begin = "command: [a]\nimage: b\nroles: {worker: 1}\ncontainer: ";
  const auto job = ParseJob(
      begin +
          "{volumes: ['in put:/in:ro', '/a:b:/c'], work_dir: /in, user: '1:2', pids: 99, shm: 2Gi, "
          "network: job}",
      "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->container.pids, 99);
  EXPECT_TRUE(job->container.own_network);
  EXPECT_EQ(job->container.shm_bytes, int64_t{2} << 30);
  const auto first = ParseVolume(job->container.volumes.at(0));
  EXPECT_EQ(first->source, "in put");
  EXPECT_EQ(first->target, "/in");
  EXPECT_TRUE(first->read_only);
  const auto second = ParseVolume(job->container.volumes.at(1));
  EXPECT_EQ(second->source, "/a:b");
  EXPECT_FALSE(second->read_only);
  EXPECT_NE(ErrorOf(begin + "{volumes: [data]}").find("expected SOURCE:TARGET"), std::string::npos);
  EXPECT_NE(ErrorOf(begin + "{work_dir: in}").find("expected an absolute path"), std::string::npos);
  EXPECT_NE(ErrorOf(begin + "{volume: [a:/b]}").find("did you mean 'volumes'?"), std::string::npos);
}

TEST(ParseDocument, AMemberHasItsValuesAndItsName) {
  constexpr const char* kText = R"yaml(name: grid
command: [train, "--lr={{matrix.lr}}", "{{matrix.index}}", "{{matrix.n}}{{matrix.lr}}"]
matrix: {lr: [0.1, 0.01], n: [1, 4]}
roles: {worker: {replicas: "{{matrix.n}}"}}
after: [prepare]
)yaml";
  FieldLocations places;
  const auto job = ParseDocument(kText, "job.yaml", {.member = 3}, &places);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->name, "grid-3");
  EXPECT_EQ(job->roles[0].replicas, 4);
  EXPECT_THAT(job->command, testing::ElementsAre("train", "--lr=0.01", "3", "40.01"));
  EXPECT_FALSE(job->triggers.has_members());
  EXPECT_EQ(job->triggers.after.size(), 1u);
  EXPECT_FALSE(ParseDocument(kText, "job.yaml", {.member = 4}).ok());
  // Without a member it is the job itself.
  const auto whole = ParseJob(kText, "job.yaml", {"matrix.lr=[3]", "name=other"});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->name, "other");
  EXPECT_EQ(whole->command[1], "--lr=3");
  EXPECT_TRUE(whole->triggers.has_members());
  // A value that the field does not take is found at the field.
  const auto wrong = ParseDocument(kText, "job.yaml", {.overrides = {"matrix.n=[x]"}, .member = 0});
  EXPECT_EQ(wrong.status().message(),
            "job.yaml:4:28: roles.worker.replicas: got 'x', expected an integer from 0 to 100000");
}

TEST(ParseDocument, ReadsOneOfSeveral) {
  constexpr const char* kText = "command: [a]\nname: a\n---\n---\nname: b\ncommand: [b]\nx: 1\n";
  const auto all = ListDocuments(kText, "job.yaml");
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(*all, testing::ElementsAre(0, 2));
  EXPECT_EQ(ParseDocument(kText, "job.yaml", {.document = 0})->name, "a");
  EXPECT_THAT(ParseDocument(kText, "job.yaml", {.document = 2}).status().message(),
              testing::StartsWith("job.yaml:7:1: got the unknown field 'x'"));
  EXPECT_FALSE(ParseDocument(kText, "job.yaml", {.document = 9}).ok());
  EXPECT_FALSE(ParseJob(kText, "job.yaml").ok());
}

}  // namespace
}  // namespace shoal::job
