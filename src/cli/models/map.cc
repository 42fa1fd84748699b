// `shoal map MODEL -o FILE`: word vectors as points of a plane.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "base/output_file.h"
#include "cli/models/model_commands.h"
#include "cli/models/word_map.h"
#include "cli/terminal/report.h"
#include "model/projection.h"
#include "model/vector_index.h"

namespace shoal::cli {
namespace {

constexpr uint64_t kFitted = 5000;  // rows that the components are of
constexpr size_t kNeighbours = 5;   // in the title of a point
constexpr uint64_t kMaxBytes = uint64_t{4} << 30;

struct MapArguments {
  std::string model;
  std::string output;
  uint64_t top = 300;
  std::vector<std::string> words;
};

// The rows of the picture: the given words, then the most frequent ones.
Result<std::vector<uint64_t>> ChooseRows(const model::VectorIndex& index,
                                         const MapArguments& arguments) {
  std::vector<uint64_t> rows;
  for (const std::string& word : arguments.words) {
    const auto found = index.Find(word);
    if (!found) {
      const auto near = index.Suggest(word);
      return NotFound("there is no vector of the word " + word +
                      (near ? "; did you mean " + *near + "?" : ""));
    }
    if (std::ranges::find(rows, *found) == rows.end()) rows.push_back(*found);
  }
  const size_t given = rows.size();
  for (uint64_t row = 0; row < index.rows() && rows.size() < given + arguments.top; ++row) {
    if (std::find(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(given), row) ==
        rows.begin() + static_cast<ptrdiff_t>(given))
      rows.push_back(row);
  }
  return rows;
}

// The word with its nearest ones.
std::string TitleOf(const model::VectorIndex& index, uint64_t row) {
  std::string title = index.word(row);
  const uint64_t excluded[] = {row};
  for (const model::Neighbour& near : index.Nearest(index.unit(row), kNeighbours, excluded))
    title += fmt::format("{}{} {:.2f}", title.size() == index.word(row).size() ? ": " : ", ",
                         index.word(near.row), near.similarity);
  return title;
}

Result<WordMap> MakeMap(const MapArguments& arguments) {
  TRY_ASSIGN(model::Vectors vectors, model::ReadVectors(arguments.model, {.max_bytes = kMaxBytes}));
  const model::VectorIndex index(std::move(vectors));
  TRY_ASSIGN(const std::vector<uint64_t> shown, ChooseRows(index, arguments));
  // The plane is that of the frequent words, however few of them are shown.
  std::vector<uint64_t> rows = shown;
  for (uint64_t row = 0; row < index.rows() && rows.size() < kFitted; ++row)
    if (std::ranges::find(shown, row) == shown.end()) rows.push_back(row);
  std::vector<float> values;
  values.reserve(rows.size() * index.dim());
  for (const uint64_t row : rows) {
    const auto unit = index.unit(row);
    values.insert(values.end(), unit.begin(), unit.end());
  }
  const Result<model::Projection> plane = model::PrincipalPlane(values, index.dim());
  if (!plane.ok()) return plane.status().With(arguments.model);
  WordMap map;
  map.title = "Words of " + arguments.model;
  map.x_title = fmt::format("1st component, {:.1f} % of the variance", 100 * plane->shares[0]);
  map.y_title = fmt::format("2nd component, {:.1f} %", 100 * plane->shares[1]);
  for (size_t i = 0; i < shown.size(); ++i)
    map.points.push_back({index.word(shown[i]), plane->points[2 * i], plane->points[2 * i + 1],
                          TitleOf(index, shown[i]), i < arguments.words.size()});
  return map;
}

int WriteMap(const MapArguments& arguments) {
  const Result<WordMap> map = MakeMap(arguments);
  if (!map.ok()) return PrintError(map.status());
  const bool page = arguments.output.ends_with(".html") || arguments.output.ends_with(".htm");
  const std::string text = page ? WordMapPage(*map) : WordMapSvg(*map);
  if (arguments.output == "-") return PrintResult(text);
  const Status written = WriteOutputFile(arguments.output, text);
  return written.ok() ? 0 : PrintError(written);
}

constexpr const char* kMapFooter = R"help(Examples:
  shoal map vectors -o map.svg
  shoal map vectors -o map.html --top 1000
  shoal map vectors.bin --words king,sea -o - > map.svg

Each word is a point of the plane in which the 5,000 most frequent words differ most (the first two
principal components of their unit vectors), with its name where there is room. The mouse shows the
name and the nearest words. The file needs no network and has no scripts.)help";

}  // namespace

void AddMap(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<MapArguments>();
  CLI::App* sub = app.add_subcommand("map", "Draw word vectors in a plane to an SVG or HTML file");
  sub->add_option("MODEL", arguments->model,
                  "Model directory, or a file in word2vec's text or binary format")
      ->required()
      ->type_name("");
  sub->add_option("-o,--output", arguments->output, "The file; - for SVG on standard output")
      ->type_name("FILE")
      ->required();
  sub->add_option("--top", arguments->top, "The most frequent words that are drawn [300]")
      ->check(CLI::Range(0, 5'000).description(""))
      ->type_name("N");
  sub->add_option("--words", arguments->words, "Words that are drawn and marked besides")
      ->delimiter(',')
      ->type_name("WORD,…");
  sub->footer(kMapFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& /*context*/) { return WriteMap(*arguments); };
  });
}

}  // namespace shoal::cli
