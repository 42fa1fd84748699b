// `shoal nearest`: shows the words nearest to given words.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/commands/neighbours.h"
#include "cli/terminal/report.h"
#include "model/vector_index.h"

namespace shoal::cli {
namespace {

struct NearestArguments {
  std::string model;
  std::vector<std::string> words;
  size_t k = 10;
  bool mean = false;
};

// One query per word, or one for the mean of all.
std::vector<std::vector<std::string>> QuestionsOf(const NearestArguments& arguments) {
  if (arguments.mean) return {arguments.words};
  std::vector<std::vector<std::string>> questions;
  for (const std::string& word : arguments.words) questions.push_back({word});
  return questions;
}

Status PrintNearest(const Context& context, const NearestArguments& arguments) {
  TRY_ASSIGN(model::Vectors vectors, model::ReadVectors(arguments.model));
  const model::VectorIndex index(std::move(vectors));
  std::string out;
  for (const auto& words : QuestionsOf(arguments)) {
    TRY_ASSIGN(const auto near, model::NearestWords(index, words, arguments.k));
    if (context.json) {
      json::object line;
      if (arguments.mean) {
        line["words"] = json::array(words.begin(), words.end());
      } else {
        line["word"] = words.front();
      }
      line["neighbours"] = NeighboursJson(index, near);
      out += JsonLine(line);
    } else {
      out += fmt::format("{}\n{}", fmt::join(words, " + "), NeighboursText(index, near));
    }
  }
  return PrintOut(out);
}

constexpr const char* kNearestFooter = R"help(Examples:
  shoal nearest vectors king
  shoal nearest vectors.bin king sea bread -k 5
  shoal nearest vectors paris --mean london --json | jq -r '.neighbours[].word'

MODEL is a directory written by `shoal train`, or a file in word2vec's text or binary format. The
numbers are cosine similarities: 1 is the same direction. An unknown word is an error with exit code
4 that suggests the nearest spelling.)help";

}  // namespace

void AddNearest(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<NearestArguments>();
  CLI::App* sub = app.add_subcommand("nearest", "Show the words nearest to given words");
  sub->add_option("MODEL", arguments->model, "Model directory or vectors file")
      ->required()
      ->type_name("");
  sub->add_option("WORD", arguments->words, "Words to look up")->required()->type_name("");
  sub->add_option("-k,--count", arguments->k, "Number of words to show")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->add_flag("--mean", arguments->mean, "Words nearest to the mean of all given words");
  sub->footer(kNearestFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status status = PrintNearest(context, *arguments);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

}  // namespace shoal::cli
