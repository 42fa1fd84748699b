#include "sql/query/model_functions.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "learn/sparse/predict.h"
#include "model/factor_model.h"
#include "model/save_model.h"
#include "model/vectors.h"
#include "sql/training/predicted_values.h"

namespace shoal::sql {
namespace {

using Values = std::vector<TextValue>;
using Texts = std::vector<std::string_view>;

// A linear model or a factorization machine that predicts rows, which are JSON texts.
class RowPredictor {
 public:
  static Result<std::shared_ptr<RowPredictor>> Read(const ModelFunction& function,
                                                    const std::string& directory) {
    auto made = std::make_shared<RowPredictor>();
    TRY_ASSIGN(made->metadata_, model::ReadModelMetadata(function.model));
    TRY(CheckTrainer(made->metadata_, function.model, function.trainer));
    TRY_ASSIGN(made->model_, model::ReadFactorModel(function.model));
    TRY_ASSIGN(made->target_, learn::sparse::TargetFromJson(made->metadata_));
    const json::object* const data = FindObject(made->metadata_, "data");
    made->format_ = data == nullptr ? "libsvm" : GetStringOr(*data, "format", "libsvm");
    made->lines_ = made->format_ == "libsvm" || made->format_ == "libffm";
    if (!made->lines_) made->format_ = "jsonl";
    made->directory_ = directory;
    return made;
  }

  bool numbers() const { return target_.loss.predicts_numbers(); }

  // The prediction of each row, or its probability.
  Result<Values> Predict(const Texts& rows, bool probability) {
    if (rows.empty()) return Values();
    const std::filesystem::path file =
        std::filesystem::path(directory_) / ("rows." + std::to_string(next_++) + ".jsonl");
    TRY_ASSIGN(const std::string lines, LinesOf(rows));
    TRY(WriteFileAtomically(file, lines, 0600, false));
    Result<Values> values = PredictFile(file, rows.size(), probability);
    std::error_code ignored;  // the directory is removed after the query
    std::filesystem::remove(file, ignored);
    return values;
  }

 private:
  Result<std::string> LinesOf(const Texts& rows) const {
    std::string lines;
    for (const std::string_view row : rows) {
      if (lines_) {
        TRY_ASSIGN(const std::string features, FeaturesOf(row));
        lines += "0 " + features + "\n";
      } else {
        if (!row.starts_with('{'))
          return InvalidArgument("got " + std::string(row.substr(0, 40)) +
                                 ", expected a row, as in f(t) of a table t, or a struct");
        lines += row;
        lines += '\n';
      }
    }
    return lines;
  }

  // "1:0.5 3:1" of a text, or of a row's column `features`.
  static Result<std::string> FeaturesOf(std::string_view row) {
    TRY_ASSIGN(const json::value value, ParseJson(row));
    const json::value* features = &value;
    if (value.is_object()) features = value.get_object().if_contains("features");
    const bool good = features != nullptr && features->is_string() &&
                      features->get_string().find_first_of("\r\n") == json::string::npos;
    if (!good)
      return InvalidArgument("got " + std::string(row.substr(0, 40)) +
                             ", expected features such as '1:0.5 3:1', or a row with them");
    return std::string(features->get_string());
  }

  Result<Values> PredictFile(const std::filesystem::path& file, size_t rows,
                             bool probability) const {
    learn::sparse::PredictOptions how;
    how.format = format_;
    TRY_ASSIGN(const auto predictions,
               learn::sparse::Predict(model_, metadata_, {file.string()}, how));
    if (predictions.examples != rows)
      return Internal("got " + std::to_string(predictions.examples) + " predictions of " +
                      std::to_string(rows) + " rows");
    const PredictedValues predicted(predictions);
    Values values;
    for (size_t row = 0; row < rows; ++row) {
      if (probability) {
        values.emplace_back(predicted.ProbabilityOf(row));
      } else if (predicted.numbers()) {
        values.emplace_back(predictions.values[row]);
      } else {
        values.emplace_back(predictions.ClassOf(row));
      }
    }
    return values;
  }

  json::object metadata_;
  model::FactorModel model_;
  learn::sparse::Target target_;
  std::string format_;
  bool lines_ = false;  // libsvm or libffm
  std::string directory_;
  std::atomic<uint64_t> next_ = 0;
};

// Text as a function takes it: of rows as JSON.
std::string MacroOf(const std::string& name, const std::string& inner) {
  return "CREATE MACRO " + name + "(example) AS " + inner + "(to_json(example)::VARCHAR)";
}

Status AddRowFunction(const ModelFunction& function, const std::string& directory, DuckDb* duck) {
  TRY_ASSIGN(const auto predictor, RowPredictor::Read(function, directory));
  std::vector<std::pair<std::string, bool>> made = {{function.name, false}};
  if (!predictor->numbers()) made.emplace_back(function.name + "_probability", true);
  for (const auto& [name, probability] : made) {
    TextFunction inner;
    inner.name = "shoal_model_" + name;
    inner.returns = probability || predictor->numbers() ? TextFunction::Returns::kNumber
                                                        : TextFunction::Returns::kText;
    inner.call = [predictor, shown = name,
                  of_probability = probability](const Texts& rows) -> Result<Values> {
      Result<Values> values = predictor->Predict(rows, of_probability);
      if (!values.ok()) return values.status().With(shown);
      return values;
    };
    const std::string macro = MacroOf(name, inner.name);
    TRY(duck->Register(std::move(inner)));
    DuckDbError error;
    if (!duck->Execute(macro, &error)) return InvalidArgument(error.message);
  }
  return Status::Ok();
}

// f(word): its vector, NULL if it has none.
Status AddVectorFunction(const ModelFunction& function, DuckDb* duck) {
  TRY_ASSIGN(model::Vectors read, model::ReadVectors(function.model));
  const auto vectors = std::make_shared<const model::Vectors>(std::move(read));
  const auto index = std::make_shared<std::unordered_map<std::string_view, uint64_t>>();
  for (uint64_t row = 0; row < vectors->words.size(); ++row)
    index->emplace(vectors->words[row], row);
  TextFunction made;
  made.name = function.name;
  made.returns = TextFunction::Returns::kNumbers;
  made.call = [vectors, index](const Texts& words) -> Result<Values> {
    Values values;
    for (const std::string_view word : words) {
      const auto found = index->find(word);
      if (found == index->end()) {
        values.emplace_back();
      } else {
        const auto row = vectors->row(found->second);
        values.emplace_back(std::vector<float>(row.begin(), row.end()));
      }
    }
    return values;
  };
  return duck->Register(std::move(made));
}

}  // namespace

Result<ModelFunction> ParseModelFunction(const json::value& value) {
  if (!value.is_object()) return InvalidArgument("functions: expected objects");
  const json::object& object = value.get_object();
  ModelFunction function;
  TRY_ASSIGN(function.name, GetString(object, "name"));
  TRY_ASSIGN(function.trainer, GetString(object, "trainer"));
  TRY_ASSIGN(function.model, GetString(object, "model"));
  return function;
}

Status AddModelFunction(const ModelFunction& function, const std::string& directory, DuckDb* duck) {
  if (function.trainer == "word2vec") return AddVectorFunction(function, duck);
  return AddRowFunction(function, directory, duck);
}

}  // namespace shoal::sql
