// `shoal analogy`: a is to b as c is to what?

#include <CLI/CLI.hpp>
#include <memory>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/commands/neighbours.h"
#include "cli/terminal/report.h"
#include "model/vector_index.h"

namespace shoal::cli {
namespace {

struct AnalogyArguments {
  std::string model;
  std::string a, b, c;
  size_t k = 5;
};

Status PrintAnalogy(const Context& context, const AnalogyArguments& arguments) {
  TRY_ASSIGN(model::Vectors vectors, model::ReadVectors(arguments.model));
  const model::VectorIndex index(std::move(vectors));
  TRY_ASSIGN(const auto near,
             model::Analogy(index, arguments.a, arguments.b, arguments.c, arguments.k));
  if (context.json) {
    const json::object line = {{"a", arguments.a},
                               {"b", arguments.b},
                               {"c", arguments.c},
                               {"answers", NeighboursJson(index, near)}};
    return PrintOut(JsonLine(line));
  }
  return PrintOut(arguments.a + " is to " + arguments.b + " as " + arguments.c + " is to\n" +
                  NeighboursText(index, near));
}

constexpr const char* kAnalogyFooter = R"help(Examples:
  shoal analogy vectors man king woman
  shoal analogy vectors france paris italy -k 1 --json

MODEL is a directory written by `shoal train`, or a file in word2vec's text or binary format. The
answers are the words nearest to B - A + C (unit vectors), without the three words themselves. An
unknown word is an error with exit code 4 that suggests the nearest spelling.)help";

}  // namespace

void AddAnalogy(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<AnalogyArguments>();
  CLI::App* sub =
      app.add_subcommand("analogy", "Answer an analogy question: A is to B as C is to …");
  sub->add_option("MODEL", arguments->model, "Model directory or vectors file")
      ->required()
      ->type_name("");
  sub->add_option("A", arguments->a, "First word, such as man")->required()->type_name("");
  sub->add_option("B", arguments->b, "Second word, such as king")->required()->type_name("");
  sub->add_option("C", arguments->c, "Third word, such as woman")->required()->type_name("");
  sub->add_option("-k,--count", arguments->k, "Number of answers to show")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->footer(kAnalogyFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status status = PrintAnalogy(context, *arguments);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

}  // namespace shoal::cli
