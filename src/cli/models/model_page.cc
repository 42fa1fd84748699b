#include "cli/models/model_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/jobs/curve_svg.h"
#include "cli/models/html.h"
#include "cli/models/model_metadata.h"
#include "learn/sparse/csv_schema_json.h"
#include "learn/sparse/objective/label_scale.h"

namespace shoal::cli {
namespace {

using learn::sparse::Assessment;
using learn::sparse::FeatureEffect;
using learn::sparse::LossKind;
using learn::sparse::PredictionBin;
using learn::sparse::Target;
using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kMostEpochs = 2000;  // of a curve; of more, every so many-th is drawn
constexpr size_t kMostColumns = 500;
constexpr size_t kMostFiles = 20;
constexpr double kDrawable = 1e100;  // greater numbers are left out of pictures

std::string Number(double value) { return fmt::format("{:.4g}", value); }
std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string Section(std::string_view title, const std::string& content) {
  return content.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, content);
}
std::string Note(std::string_view text) { return fmt::format("<p class=\"note\">{}</p>\n", text); }

// What parts of a page are made of.
struct PageData {
  const ModelPage& page;
  Target target;
  std::optional<data::CsvSchema> columns;
  std::vector<std::string> classes;  // names by number; empty for numbers
  std::optional<Assessment> assessment;
  std::string assessed;  // what `assessment` is of, as HTML

  const json::object& metadata() const { return page.metadata; }
};

std::string FilesText(const std::vector<std::string>& files) {
  std::string text;
  for (size_t i = 0; i < std::min(files.size(), kMostFiles); ++i)
    text += (i == 0 ? "" : "<br>") + HtmlText(files[i]);
  if (files.size() > kMostFiles)
    text += fmt::format("<br>and {} more files", files.size() - kMostFiles);
  return text;
}

Result<PageData> CollectPageData(const ModelPage& page) {
  PageData data{page, {}, {}, {}, {}, ""};
  TRY_ASSIGN(data.target, learn::sparse::TargetFromJson(page.metadata));
  TRY_ASSIGN(data.columns, learn::sparse::CsvSchemaFromJson(page.metadata));
  if (!data.target.loss.predicts_numbers()) {
    data.classes = data.columns && !data.columns->classes.empty() ? data.columns->classes
                                                                  : data.target.classes;
    if (data.classes.empty()) data.classes = {"0", "1"};
  }
  if (page.predicted) {
    data.assessment = page.predicted->assessment;
    data.assessed = "the predicted data";
    return data;
  }
  TRY_ASSIGN(auto saved, learn::sparse::AssessmentFromJson(page.metadata));
  if (!saved) return data;
  data.assessment = std::move(saved->assessment);
  data.assessed = saved->of == "test" ? "the test data" : "the validation data";
  return data;
}

std::string SummaryPart(const PageData& data) {
  const json::object& metadata = data.metadata();
  const auto text = [&](const json::object& object, std::string_view name) {
    return HtmlText(MetadataText(object, name));
  };
  Rows rows = {{"Model", text(metadata, "algorithm") + " in " + HtmlText(data.page.path)},
               {"Saved", text(metadata, "created") + " by Shoal " + text(metadata, "shoal")},
               {"Loss", std::string(NameOf(data.target.loss.kind))}};
  if (data.target.loss.kind == LossKind::kQuantile)
    rows.back()[1] += fmt::format(", quantile {:.4g}", data.target.loss.quantile);
  if (data.columns) rows.push_back({"Label", HtmlText(data.columns->label)});
  if (!data.classes.empty()) {
    std::string names;
    for (size_t i = 0; i < std::min(data.classes.size(), kMostFiles); ++i)
      names += (i == 0 ? "" : ", ") + HtmlText(data.classes[i]);
    if (data.classes.size() > kMostFiles) names += fmt::format(", … ({})", data.classes.size());
    rows.push_back({"Classes", names});
  }
  if (const json::object* const training = FindObject(metadata, "training"); training != nullptr) {
    rows.push_back({"Trained on", text(*training, "examples") + " examples, " +
                                      text(*training, "epochs") + " epochs, " +
                                      text(*training, "workers") + " workers"});
  }
  const json::object* const files = FindObject(metadata, "data");
  rows.push_back({"Training data", FilesText(MetadataList(files, "files"))});
  for (const auto& [name, title] :
       {std::pair{"held_out", "Test data"}, {"validation", "Validation"}}) {
    const json::object* const quality = FindObject(metadata, name);
    if (quality == nullptr) continue;
    rows.push_back({title, HtmlText(MeasuresText(*quality)) + ", of " + text(*quality, "examples") +
                               " examples"});
  }
  if (data.page.predicted) {
    rows.push_back({"Predicted data", FilesText(data.page.predicted->files)});
    rows.push_back({"Quality there", HtmlText(MeasuresText(data.page.predicted->quality)) +
                                         ", of " + text(data.page.predicted->quality, "examples") +
                                         " examples"});
  }
  rows.push_back({"Weights", fmt::format("{} are not 0", data.page.model->nonzero)});
  return HtmlTable({}, rows, false);
}

void AddPoint(double x, double value, PlotLine* line) {
  if (std::isfinite(value) && std::abs(value) < kDrawable) line->points.push_back({x, value});
}

// The loss among the measures of an epoch's held-out examples.
double HeldOutLoss(const json::object& quality, LossKind loss) {
  switch (loss) {
    case LossKind::kSquared: {
      const double root = GetDoubleOr(quality, "rmse", NAN);
      return root * root;
    }
    case LossKind::kQuantile:
      return GetDoubleOr(quality, "pinball", NAN);
    case LossKind::kPoisson:
      return GetDoubleOr(quality, "deviance", NAN);
    case LossKind::kHinge:
      return GetDoubleOr(quality, "hinge", NAN);
    default:
      return GetDoubleOr(quality, "log_loss", NAN);
  }
}

std::string CurvePart(const PageData& data) {
  const json::value* const found = data.metadata().if_contains("epochs");
  if (found == nullptr || !found->is_array() || found->as_array().empty()) return "";
  const json::array& epochs = found->as_array();
  std::vector<PlotLine> lines = {
      {"training, each example before it was learnt from", {}}, {"validation", {}}, {"test", {}}};
  const size_t step = epochs.size() / kMostEpochs + 1;
  for (size_t i = 0; i < epochs.size(); ++i) {
    if (!epochs[i].is_object() || (i % step != 0 && i + 1 != epochs.size())) continue;
    const json::object& epoch = epochs[i].as_object();
    const double number = GetDoubleOr(epoch, "epoch", static_cast<double>(i + 1));
    if (!(std::abs(number) < kDrawable)) continue;
    AddPoint(number, GetDoubleOr(epoch, "train_loss", NAN), &lines[0]);
    AddPoint(number, GetDoubleOr(epoch, "validation", NAN), &lines[1]);
    if (const json::object* const test = FindObject(epoch, "held_out"); test != nullptr)
      AddPoint(number, HeldOutLoss(*test, data.target.loss.kind), &lines[2]);
  }
  std::erase_if(lines, [](const PlotLine& line) { return line.points.empty(); });
  if (lines.empty()) return "";
  std::string part = PlotElement({{std::string(NameOf(data.target.loss.kind)) + " loss",
                                   std::move(lines), "epoch", epochs.size() <= 100}});
  const int64_t best = GetIntOr(data.metadata(), "best_epoch", 0);
  if (best > 0) part += Note(fmt::format("The model of epoch {} was saved.", best));
  return part;
}

// What the bins of a loss are about.
struct BinTexts {
  const char* title;
  const char* predicted;
  const char* observed;
  const char* explanation;
};

BinTexts BinTextsOf(LossKind loss) {
  switch (loss) {
    case LossKind::kSoftmax:
      return {
          "Calibration", "probability of the predicted class", "share predicted right",
          "Examples whose likeliest class got about the same probability, and how many of them "
          "were predicted right. On the dashed line a probability of 70 % is right 7 times of 10."};
    case LossKind::kQuantile:
      return {"Coverage", "prediction", "share of labels at most the prediction",
              "Examples with about the same prediction. Of a good model the share is the quantile "
              "everywhere."};
    case LossKind::kSquared:
    case LossKind::kPoisson:
      return {"Predictions and labels", "mean prediction", "mean label",
              "Examples with about the same prediction, and the mean of their labels. On the "
              "dashed line they are equal."};
    default:
      return {"Calibration", "predicted probability", "share of the class",
              "Examples with about the same predicted probability, and how many of them have that "
              "class. On the dashed line the two are equal."};
  }
}

std::string BinsPicture(const PageData& data, const BinTexts& texts) {
  const std::vector<PredictionBin>& bins = data.assessment->bins;
  PlotPanel panel{texts.observed, {}, texts.predicted, true};
  PlotLine observed{"observed", {}};
  for (const PredictionBin& bin : bins) {
    if (std::abs(bin.predicted) < kDrawable) AddPoint(bin.predicted, bin.observed, &observed);
  }
  if (observed.points.empty()) return "";
  double least = observed.points.front().seconds, greatest = observed.points.back().seconds;
  PlotLine ideal{"ideal", {}};
  if (data.target.loss.kind == LossKind::kQuantile) {
    const auto quantile = static_cast<double>(data.target.loss.quantile);
    ideal.points = {{least, quantile}, {greatest, quantile}};
  } else {
    if (!data.target.loss.predicts_numbers()) least = 0, greatest = 1;
    ideal.points = {{least, least}, {greatest, greatest}};
  }
  panel.lines = {std::move(observed), std::move(ideal)};
  return PlotElement({panel});
}

std::string BinsPart(const PageData& data) {
  if (!data.assessment || data.assessment->bins.empty()) return "";
  const LossKind loss = data.target.loss.kind;
  const BinTexts texts = BinTextsOf(loss);
  const bool number = data.target.loss.predicts_numbers();
  Rows rows;
  double off = 0;
  uint64_t examples = 0;
  for (const PredictionBin& bin : data.assessment->bins) {
    const bool share = !number || loss == LossKind::kQuantile;
    rows.push_back({std::to_string(bin.examples),
                    number ? Number(bin.predicted) : Percent(bin.predicted),
                    share ? Percent(bin.observed) : Number(bin.observed)});
    off += static_cast<double>(bin.examples) * std::abs(bin.predicted - bin.observed);
    examples += bin.examples;
  }
  std::string part = Note(std::string(texts.explanation) + " Of " + data.assessed + ".");
  if (loss == LossKind::kLogistic)
    part += "<p>Class: " + HtmlText(data.classes[std::min<size_t>(1, data.classes.size() - 1)]) +
            "</p>\n";
  part += BinsPicture(data, texts);
  if (!number && examples > 0) {
    part += fmt::format("<p>Mean difference (expected calibration error): {}</p>\n",
                        Percent(off / static_cast<double>(examples)));
  }
  part += HtmlTable({"examples", texts.predicted, texts.observed}, rows, true);
  return Section(texts.title, part);
}

std::string ResidualsPart(const PageData& data) {
  if (!data.assessment || data.assessment->residuals.empty()) return "";
  Rows rows;
  for (size_t i = 0; i < data.assessment->residuals.size(); ++i)
    rows.push_back({i == 0    ? "least"
                    : i == 10 ? "greatest"
                              : fmt::format("{} %", 10 * i),
                    Number(data.assessment->residuals[i])});
  return Section("Residuals", Note("Label less prediction: so many of the examples of " +
                                   data.assessed + " have at most this.") +
                                  HtmlTable({"quantile", "residual"}, rows, true));
}

// A cell whose shade is its share of its row.
std::string CountCell(uint64_t count, uint64_t of_row, bool right) {
  const double share = of_row == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of_row);
  return fmt::format(
      "<span class=\"count\" style=\"background:rgba({},{:.3f});padding:.15em .4em\">{}</span>",
      right ? "0,158,115" : "213,94,0", 0.6 * share, count);
}

std::string ConfusionPart(const PageData& data) {
  if (!data.assessment || data.assessment->classes.empty()) return "";
  const Assessment& assessment = *data.assessment;
  std::vector<std::string> names;
  for (const uint32_t number : assessment.classes)
    names.push_back(number < data.classes.size() ? HtmlText(data.classes[number])
                                                 : "class " + std::to_string(number));
  if (assessment.others) names.emplace_back("all others");
  std::vector<std::string> heading = {"label \\ predicted"};
  heading.insert(heading.end(), names.begin(), names.end());
  heading.insert(heading.end(), {"found", "examples"});
  Rows rows;
  const size_t sides = assessment.sides();
  for (size_t row = 0; row < sides; ++row) {
    const auto begin = assessment.counts.begin() + static_cast<std::ptrdiff_t>(row * sides);
    uint64_t all = 0;
    for (size_t i = 0; i < sides; ++i) all += begin[static_cast<std::ptrdiff_t>(i)];
    std::vector<std::string> cells = {names[row]};
    for (size_t i = 0; i < sides; ++i)
      cells.push_back(CountCell(begin[static_cast<std::ptrdiff_t>(i)], all, i == row));
    const bool others = assessment.others && row + 1 == sides;
    const uint64_t right = begin[static_cast<std::ptrdiff_t>(row)];
    cells.push_back(
        all == 0 || others ? "–" : Percent(static_cast<double>(right) / static_cast<double>(all)));
    cells.push_back(std::to_string(all));
    rows.push_back(std::move(cells));
  }
  std::string note =
      "Examples of " + data.assessed +
      " by their label (row) and the likeliest class (column); shades are shares of the row.";
  if (assessment.others) note += " The classes are the most frequent ones.";
  return Section("Confusion", Note(note) + "<div style=\"overflow-x:auto\">" +
                                  HtmlTable(heading, rows, true) + "</div>\n");
}

std::string EffectsPart(const PageData& data) {
  const auto& model = *data.page.model;
  if (model.effects.empty()) return "";
  const bool scaled = std::any_of(model.effects.begin(), model.effects.end(),
                                  [](const FeatureEffect& effect) { return effect.scaled; });
  std::vector<std::string> heading = {"feature"};
  if (!model.classes.empty()) heading.emplace_back("class");
  heading.insert(heading.end(), {"effect", ""});
  if (scaled) heading.insert(heading.end(), {"per unit", "mean", "deviation"});
  const double most = std::abs(model.effects.front().weight);
  Rows rows;
  for (const FeatureEffect& effect : model.effects) {
    std::vector<std::string> row = {HtmlText(effect.name)};
    if (!model.classes.empty()) row.push_back(HtmlText(effect.class_name));
    row.push_back(fmt::format("{:+.4g}", effect.weight));
    const double share = most > 0 ? std::abs(effect.weight) / most : 0;
    row.push_back(fmt::format("<span class=\"bar\" style=\"width:{:.0f}px;background:{}\"></span>",
                              120 * std::min(1.0, share),
                              effect.weight > 0 ? "#0072B2" : "#D55E00"));
    if (scaled && effect.scaled) {
      row.insert(row.end(), {fmt::format("{:+.4g}", effect.per_unit), Number(effect.mean),
                             Number(effect.deviation)});
    } else if (scaled) {
      row.insert(row.end(), {"", "", ""});
    }
    rows.push_back(std::move(row));
  }
  std::string note = "Effect: change " + EffectUnit(NameOf(data.target.loss.kind)) +
                     (scaled ? " by one deviation of a number, or by a class or a missing cell."
                             : " by value 1 of the feature.");
  if (model.unnamed > 0)
    note += fmt::format(" {} weights belong to classes that no file names.", model.unnamed);
  return Note(HtmlText(note)) + HtmlTable(heading, rows, true);
}

std::string ParametersPart(const PageData& data) {
  const json::object* const parameters = FindObject(data.metadata(), "parameters");
  if (parameters == nullptr) return "";
  Rows rows;
  for (const auto& field : *parameters)
    rows.push_back({HtmlText(field.key()), HtmlText(MetadataText(*parameters, field.key()))});
  return HtmlTable({"parameter", "value"}, rows, false);
}

std::string ColumnsPart(const PageData& data) {
  if (!data.columns) return "";
  const data::CsvSchema& columns = *data.columns;
  const bool scaled = !columns.scales.empty();
  Rows rows;
  for (size_t i = 0; i < std::min(columns.names.size(), kMostColumns); ++i) {
    const std::string& name = columns.names[i];
    const auto& named = columns.categorical;
    const bool scale = scaled && columns.scales[i].factor > 0 && name != columns.label;
    const char* kind = scale ? "numbers" : "";
    if (std::find(named.begin(), named.end(), name) != named.end()) kind = "names of classes";
    if (name == columns.weight) kind = "weight of the example";
    if (name == columns.key) kind = "key of the example";
    if (name == columns.label) kind = "label";
    rows.push_back({HtmlText(name), kind});
    if (!scaled) continue;
    rows.back().push_back(scale ? Number(columns.scales[i].mean) : "");
    rows.back().push_back(scale ? Number(1 / columns.scales[i].factor) : "");
    const data::CsvIndicator indicator = columns.scales[i].indicator;
    rows.back().emplace_back(indicator == data::CsvIndicator::kNone      ? ""
                             : indicator == data::CsvIndicator::kMissing ? "some missing"
                                                                         : "most missing");
  }
  std::vector<std::string> heading = {"column", "content"};
  if (scaled) heading.insert(heading.end(), {"mean", "deviation", "cells"});
  std::string part = HtmlTable(heading, rows, false);
  if (columns.names.size() > kMostColumns)
    part += Note(fmt::format("and {} more columns", columns.names.size() - kMostColumns));
  return part;
}

}  // namespace

Result<std::string> RenderModelPage(const ModelPage& page) {
  TRY_ASSIGN(const PageData data, CollectPageData(page));
  const std::string title = (page.predicted ? "Predictions of " : "Model ") + HtmlText(page.path);
  std::string body = "<h1>" + title + "</h1>\n" + SummaryPart(data);
  body += Section("Loss by epoch", CurvePart(data));
  body += BinsPart(data) + ConfusionPart(data) + ResidualsPart(data);
  if (!data.assessment) {
    body += Section("Held-out examples",
                    Note("The model was saved without measurements of examples that it had not "
                         "learnt from (--test or --validation)."));
  }
  body += Section("Strongest features", EffectsPart(data));
  body += Section("Parameters", ParametersPart(data));
  body += Section("Columns of the training data", ColumnsPart(data));
  return HtmlPage(title, body);
}

}  // namespace shoal::cli
