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

struct Arguments {
  std::string model;
  std::string a, b, c;
  size_t k = 5;
};

Status PrintAnalogy(const Context& context, const Arguments& arguments) {
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

constexpr const char* kFooter = R"help(Examples:
  shoal analogy vectors man king woman
  shoal analogy vectors france paris italy -k 1 --json

MODEL is a directory that `shoal train` made, or a file in word2vec's text or binary format. The
answers are the words nearest to B - A + C (unit vectors), the three words themselves left out. A
word that the model does not know ends the command with exit code 4 and the nearest spelling.)help";

}  // namespace

void AddAnalogy(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("analogy", "Answer: A is to B as C is to what?");
  sub->add_option("MODEL", arguments->model, "Model directory or vectors file")
      ->required()
      ->type_name("");
  sub->add_option("A", arguments->a, "As in man")->required()->type_name("");
  sub->add_option("B", arguments->b, "As in king")->required()->type_name("");
  sub->add_option("C", arguments->c, "As in woman")->required()->type_name("");
  sub->add_option("-k,--count", arguments->k, "How many answers to show")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->footer(kFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status status = PrintAnalogy(context, *arguments);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

}  // namespace shoal::cli
