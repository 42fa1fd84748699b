#include "learn/params/params.h"

#include <gtest/gtest.h>

#include "job/file/parse.h"
#include "learn/algorithm.h"
#include "learn/task/parameter_server.h"
#include "learn/word2vec/params.h"

namespace shoal::learn {
namespace {

using word2vec::Parse;

std::map<std::string, job::LearnValue> Learn(std::string name, std::string text, int line = 5,
                                             int column = 10) {
  return {{"algorithm", {"word2vec", 4, 14}}, {std::move(name), {std::move(text), line, column}}};
}

std::string ErrorOf(std::string name, std::string text) {
  const auto params = Parse(Learn(std::move(name), std::move(text)), "job.yaml");
  return params.ok() ? "" : params.status().message();
}

TEST(Params, DefaultsAreWord2vecs) {
  const auto params = Parse({}, "");
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params->dim, 100);
  EXPECT_EQ(params->window, 5);
  EXPECT_EQ(params->negative, 5);
  EXPECT_EQ(params->sample, 1e-3);
  EXPECT_EQ(params->min_count, 5);
  EXPECT_EQ(params->alpha, 0.025);
  EXPECT_NEAR(params->min_alpha, 0.025e-4, 1e-12);
  EXPECT_EQ(params->epochs, 5);
  EXPECT_FALSE(params->cbow);
}

// A job file with this many servers; `more`: fields of the role worker.
Status CheckRoles(const std::string& copies, int servers, const std::string& more = "") {
  const std::string text =
      "framework: shoal\nlearn: {algorithm: word2vec, server_copies: " + copies +
      "}\ndata: {train: {source: a.txt, format: text}}\nroles:\n  server: {replicas: " +
      std::to_string(servers) + ", follows: worker}\n  worker: {replicas: 2" + more + "}\n";
  const auto job = job::ParseJob(text, "job.yaml");
  return job.ok() ? ValidateRoles(*job, "word2vec") : job.status();
}

// The data is divided by the number of workers: with a changing number, parts would overlap.
TEST(Params, WorkersOfATrainerAreNotElastic) {
  for (const char* const more : {", max: 3", ", min: 1", ", min: 1, max: 3"}) {
    const Status status = CheckRoles("1", 1, more);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << more;
    EXPECT_NE(status.message().find("expected a fixed number: word2vec divides its data"),
              std::string::npos)
        << status.message();
  }
  EXPECT_NE(CheckRoles("1", 1, ", max: 3").message().find("got from 2 to 3 tasks"),
            std::string::npos);
  EXPECT_TRUE(CheckRoles("1", 1, ", min: 2, max: 2").ok());
}

TEST(Params, ServerCopiesAreOneOrTwoAndTwoNeedTwoServers) {
  EXPECT_TRUE(CheckRoles("1", 1).ok());
  EXPECT_TRUE(CheckRoles("2", 2).ok()) << CheckRoles("2", 2).message();
  EXPECT_EQ(CheckRoles("2", 1).message(),
            "job.yaml:2:45: learn.server_copies: got 2, expected 1 with fewer than 2 servers; add "
            "`server: {replicas: 2, follows: worker}`");
  EXPECT_EQ(ErrorOf("server_copies", "3"),
            "job.yaml:5:10: learn.server_copies: got 3, expected an integer in [1, 2]");
  EXPECT_EQ(ErrorOf("server_copies", "two"),
            "job.yaml:5:10: learn.server_copies: got two, expected an integer in [1, 2]");
}

TEST(Params, RetiredParametersAreRefusedWithTheirReplacement) {
  EXPECT_EQ(ErrorOf("group", "0"),
            "job.yaml:5:10: learn.group: no longer a parameter: all contexts of a window share its "
            "noise words now, as group: 0 meant; leave it out");
  EXPECT_NE(ErrorOf("group-frequent", "300").find("no longer a parameter"), std::string::npos);
  EXPECT_NE(ErrorOf("noise_uses", "8").find("drawn anew"), std::string::npos);
  const std::string markdown = ParamsAsMarkdown(word2vec::ParamTable());
  EXPECT_EQ(markdown.find("noise_uses"), std::string::npos);
}

TEST(Params, ErrorsNameTheLocationAndTheAllowedValues) {
  EXPECT_EQ(ErrorOf("dim", "0"),
            "job.yaml:5:10: learn.dim: got 0, expected an integer in [1, 4096]");
  EXPECT_EQ(ErrorOf("dim", "100000"),
            "job.yaml:5:10: learn.dim: got 100000, expected an integer in [1, 4096]");
  EXPECT_EQ(ErrorOf("dim", "ten"),
            "job.yaml:5:10: learn.dim: got ten, expected an integer in [1, 4096]");
  EXPECT_EQ(ErrorOf("alpha", "0"),
            "job.yaml:5:10: learn.alpha: got 0, expected a number in (0, 1]");
  EXPECT_EQ(ErrorOf("alpha", "nan"),
            "job.yaml:5:10: learn.alpha: got nan, expected a number in (0, 1]");
  EXPECT_EQ(ErrorOf("cbow", "maybe"),
            "job.yaml:5:10: learn.cbow: got maybe, expected true or false");
  EXPECT_EQ(
      ErrorOf("simd", "neon"),
      "job.yaml:5:10: learn.simd: got neon, expected one of auto, avx512, avx2, sse4, scalar");
  EXPECT_EQ(
      ErrorOf("simd", "avx521"),
      "job.yaml:5:10: learn.simd: got avx521, expected one of auto, avx512, avx2, sse4, scalar; "
      "did you mean 'avx512'?");
  EXPECT_EQ(ErrorOf("dimm", "10"),
            "job.yaml:5:10: learn.dimm: unknown parameter; did you mean dim?");
  EXPECT_EQ(ErrorOf("epochs", ""),
            "job.yaml:5:10: learn.epochs: got nothing, expected an integer in [1, 100000]");
}

TEST(Params, PlacesThatAreNotKnownAreLeftOut) {
  const auto params = Parse(Learn("dim", "0", 0, 0), "job.yaml");
  ASSERT_FALSE(params.ok());
  EXPECT_EQ(params.status().message(), "learn.dim: got 0, expected an integer in [1, 4096]");
}

TEST(Params, AliasesAndDashes) {
  EXPECT_EQ(Parse(Learn("size", "64"), "")->dim, 64);
  EXPECT_EQ(Parse(Learn("iter", "2"), "")->epochs, 2);
  EXPECT_EQ(Parse(Learn("min-count", "1"), "")->min_count, 1);
  auto twice = Learn("size", "64");
  twice["dim"] = {"65", 6, 10};
  EXPECT_FALSE(Parse(twice, "job.yaml").ok());
}

TEST(Params, CbowHasItsOwnLearningRate) {
  EXPECT_EQ(Parse(Learn("cbow", "true"), "")->alpha, 0.05);
  auto both = Learn("cbow", "true");
  both["alpha"] = {"0.01"};
  EXPECT_EQ(Parse(both, "")->alpha, 0.01);
}

TEST(Params, CombinationsThatCannotBe) {
  auto threads = Learn("deterministic", "true");
  threads["threads"] = {"2", 7, 3};
  const auto params = Parse(threads, "job.yaml");
  ASSERT_FALSE(params.ok());
  EXPECT_EQ(
      params.status().message(),
      "job.yaml:7:3: learn.threads: got 2, expected 1 because deterministic is true; use more "
      "workers instead");
  EXPECT_FALSE(Parse(Learn("min_alpha", "0.5"), "").ok());
}

TEST(Params, TextComesBackAsTheSameValues) {
  auto learn = Learn("dim", "77");
  learn["sample"] = {"1e-5"};
  learn["cbow"] = {"true"};
  learn["simd"] = {"scalar"};
  const auto params = Parse(learn, "");
  ASSERT_TRUE(params.ok());
  std::map<std::string, job::LearnValue> again;
  for (const auto& [name, text] : word2vec::ToText(*params)) again[name] = {text};
  const auto second = Parse(again, "");
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(word2vec::ToText(*second), word2vec::ToText(*params));
  EXPECT_EQ(second->dim, 77);
  EXPECT_EQ(second->sample, 1e-5);
}

TEST(Params, SeveralWorkersSendInt8UnlessToldOtherwise) {
  using enum ps::ValueType;
  word2vec::Params params = Parse({}, "").value();
  EXPECT_EQ(WireOf(params, 1).push, kF32);
  EXPECT_EQ(WireOf(params, 1).pull, kF32);
  EXPECT_EQ(WireOf(params, 2).push, kInt8);
  EXPECT_EQ(WireOf(params, 2).pull, kInt8);
  params = Parse(Learn("wire", "f32"), "").value();
  EXPECT_EQ(WireOf(params, 8).push, kF32);
  EXPECT_EQ(WireOf(params, 8).pull, kF32);
}

TEST(Params, MarkdownNamesEveryParameter) {
  const std::string page = ParamsAsMarkdown(word2vec::ParamTable());
  for (const Param& param : word2vec::ParamTable())
    EXPECT_EQ(page.find("| `" + std::string(param.name) + "` |") == std::string::npos,
              param.retired);
}

TEST(Algorithm, UnknownOnesAreRefusedWithTheirPlace) {
  job::Job job;
  job.file = "job.yaml";
  job.framework = job::Framework::kShoal;
  EXPECT_EQ(ValidateLearn(job).code(), Code::kInvalidArgument);
  job.learn["algorithm"] = {"word3vec", 4, 14};
  EXPECT_EQ(ValidateLearn(job).message(),
            "job.yaml:4:14: learn.algorithm: got word3vec, expected one of word2vec, linear, "
            "logistic, fm, ffm");
  job.framework = job::Framework::kGeneric;
  EXPECT_TRUE(ValidateLearn(job).ok());
}

TEST(Algorithm, JobsThatCannotTrainAreRefusedBeforeTheyStart) {
  job::Job job;
  job.framework = job::Framework::kShoal;
  job.learn["algorithm"] = {"word2vec"};
  EXPECT_NE(ValidateLearn(job).message().find("role worker"), std::string::npos);
  job::Role worker;
  worker.name = "worker";
  worker.replicas = 2;
  job.roles.push_back(worker);
  EXPECT_NE(ValidateLearn(job).message().find("no role server"), std::string::npos);
  job.roles[0].replicas = 1;
  EXPECT_NE(ValidateLearn(job).message().find("outputs.model"), std::string::npos);
  job.outputs["model"] = "/nonexistent-root-of-tests/model";
  EXPECT_NE(ValidateLearn(job).message().find("data: missing"), std::string::npos);
  job.data.push_back({"train", {"/nonexistent-root-of-tests/text"}, "", {}, "text", "worker"});
  EXPECT_NE(ValidateLearn(job).message().find("/nonexistent-root-of-tests/text"),
            std::string::npos);
  EXPECT_EQ(ValidateLearn(job, DataLocation::kRemote).message().find("/text"), std::string::npos);
  job.data[0].format = "parquet";
  EXPECT_NE(ValidateLearn(job, DataLocation::kRemote).message().find("got parquet, expected text"),
            std::string::npos);
}

}  // namespace
}  // namespace shoal::learn
