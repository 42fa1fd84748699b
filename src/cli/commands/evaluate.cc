// `shoal evaluate`: evaluates word vectors on similarity and analogy sets.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/terminal/report.h"
#include "model/evaluation.h"

namespace shoal::cli {
namespace {

struct EvaluateArguments {
  std::string model;
  std::string pairs;
  std::string analogies;
  uint64_t restrict_rows = 30'000;
  bool sections = false;
};

struct Results {
  uint64_t rows = 0;
  uint64_t dim = 0;
  uint64_t nonfinite = 0;
  std::optional<model::PairSimilarity> pairs;
  std::optional<model::AnalogyResults> analogies;
};

Result<Results> Evaluate(const EvaluateArguments& arguments) {
  if (arguments.pairs.empty() && arguments.analogies.empty()) {
    return InvalidArgument("shoal evaluate: give --pairs FILE, --analogies FILE, or both");
  }
  TRY_ASSIGN(model::Vectors vectors, model::ReadVectors(arguments.model));
  const model::VectorIndex index(std::move(vectors));
  Results results{index.rows(), index.dim(), index.nonfinite_rows(), {}, {}};
  if (!arguments.pairs.empty()) {
    TRY_ASSIGN(results.pairs, model::EvaluatePairs(index, arguments.pairs));
  }
  if (!arguments.analogies.empty()) {
    TRY_ASSIGN(results.analogies,
               model::EvaluateAnalogies(index, arguments.analogies, arguments.restrict_rows));
  }
  return results;
}

// A value that was not measured is null, since JSON has no NaN.
json::value NumberOrNull(double value, bool measured) {
  return measured && std::isfinite(value) ? json::value(value) : json::value(nullptr);
}

json::object SectionJson(const model::AnalogySection& section) {
  return {{"accuracy", NumberOrNull(section.accuracy(), section.answered > 0)},
          {"right", section.right},
          {"answered", section.answered},
          {"asked", section.asked}};
}

std::string ResultsJson(const EvaluateArguments& arguments, const Results& results) {
  json::object line = {{"vectors", arguments.model},
                       {"count", results.rows},
                       {"dim", results.dim},
                       {"nonfinite", results.nonfinite}};
  if (results.pairs.has_value()) {
    line["pairs"] = {{"spearman", NumberOrNull(results.pairs->spearman, true)},
                     {"pairs", results.pairs->pairs},
                     {"skipped", results.pairs->skipped}};
  }
  if (results.analogies.has_value()) {
    json::object sections;
    for (const model::AnalogySection& section : results.analogies->sections) {
      sections[section.name] = SectionJson(section);
    }
    line["analogies"] = {{"total", SectionJson(results.analogies->total)},
                         {"semantic", SectionJson(results.analogies->semantic)},
                         {"syntactic", SectionJson(results.analogies->syntactic)},
                         {"sections", std::move(sections)}};
  }
  return JsonLine(line);
}

std::string SectionText(const model::AnalogySection& section, std::string_view label) {
  const std::string accuracy =
      section.answered > 0 ? fmt::format("{:6.2f} %", 100 * section.accuracy()) : "     – %";
  return fmt::format("{:<28} {}  ({} of {} right, {} asked)\n", label, accuracy, section.right,
                     section.answered, section.asked);
}

// One line per measured set, with the sections of the analogies below if requested.
std::string ResultsText(const EvaluateArguments& arguments, const Results& results) {
  std::string text =
      fmt::format("{}: {} words of {} values\n", arguments.model, results.rows, results.dim);
  if (results.nonfinite > 0) {
    text += fmt::format("{} vectors hold NaN or infinity, taken as 0: the training diverged\n",
                        results.nonfinite);
  }
  if (results.pairs.has_value()) {
    const bool measured = std::isfinite(results.pairs->spearman);
    text += fmt::format("{:<28} {}  ({} pairs, {} skipped)\n", "pairs, Spearman's rho",
                        measured ? fmt::format("{:8.4f}", results.pairs->spearman) : "       –",
                        results.pairs->pairs, results.pairs->skipped);
  }
  if (results.analogies.has_value()) {
    text += SectionText(results.analogies->total, "analogies");
    text += SectionText(results.analogies->semantic, "  semantic");
    text += SectionText(results.analogies->syntactic, "  syntactic");
    if (!arguments.sections) return text;
    for (const model::AnalogySection& section : results.analogies->sections) {
      text += SectionText(section, "    " + section.name);
    }
  }
  return text;
}

int PrintEvaluation(const Context& context, const EvaluateArguments& arguments) {
  const Result<Results> results = Evaluate(arguments);
  if (!results.ok()) return PrintError(results.status());
  return PrintResult(context.json ? ResultsJson(arguments, *results)
                                  : ResultsText(arguments, *results));
}

constexpr const char* kEvaluateFooter = R"help(Examples:
  shoal evaluate vectors --pairs wordsim353.tsv
  shoal evaluate vectors --analogies questions-words.txt --sections
  shoal evaluate other.bin --pairs simlex999.txt --analogies questions-words.txt --restrict 0 --json

MODEL is a directory written by `shoal train`, or a file in word2vec's text or binary format. A line
of --pairs has two words and a similarity rating, separated by tabs, commas or semicolons; the
result is Spearman's rank correlation of ratings and cosine similarities. --analogies has the format
of Google's questions-words (lines "a b c d" and ": section"); the result is the share of questions
whose d is the word nearest to b - a + c among the --restrict most frequent words. Questions with
unknown words are skipped and counted. Case is ignored.)help";

}  // namespace

void AddEvaluate(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* sub =
      app.add_subcommand("evaluate", "Evaluate word vectors on similarity and analogy sets");
  sub->add_option("MODEL", arguments->model, "Model directory or vectors file")
      ->required()
      ->type_name("");
  sub->add_option("--pairs", arguments->pairs, "Word pairs with human similarity ratings")
      ->type_name("FILE");
  sub->add_option("--analogies", arguments->analogies, "Analogy questions a : b = c : d")
      ->type_name("FILE");
  sub->add_option("--restrict", arguments->restrict_rows,
                  "Answer analogies from the N most frequent words; 0: all")
      ->type_name("N")
      ->capture_default_str();
  sub->add_flag("--sections", arguments->sections,
                "Print the result of each section of the analogies as well");
  sub->footer(kEvaluateFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return PrintEvaluation(context, *arguments); };
  });
}

}  // namespace shoal::cli
