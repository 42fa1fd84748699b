// The parameters that all trainers on sparse examples have.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/examples/examples.h"
#include "learn/params/param_fields.h"
#include "learn/sparse/objective/loss.h"

namespace shoal::learn::sparse {

// What is learnt, and by what a training ends.
struct ObjectiveParams {
  std::string loss = "auto";  // resolved before a learner is made (label_guess.h)
  double quantile = 0.5;
  std::string weight;  // of tables, as the one after it
  std::string key;
  std::string class_weight;
  std::string validation;  // a share of the training data, "10%"
  int64_t patience = 3;
  std::string fold;        // "2/5": the second fifth is held out
  bool validates = false;  // there is such a share, or data.validation; set by RunWorker
  std::string from;        // a saved model to continue
  bool keep_optimizer = true;
};

// Plain data; an algorithm's own parameters derive from it.
struct CommonParams : ObjectiveParams {
  int64_t epochs = 2;  // 0: EpochsFor
  std::string normalize = "auto";
  bool bias = true;
  int64_t hash_bits = 0;  // 0 with tables: kCsvHashBits
  std::string label;      // of tables, as the five after it
  std::string positive;
  std::string categorical;
  std::string delimiter = "comma";
  std::string header = "auto";
  std::string max_bad;
  std::optional<data::CsvSchema> trained;  // what the five and `label` came to in training
  bool continues = false;  // `trained` is that of a model that learns from the data, weights too
  int64_t threads = 0;     // 0: its resources.cpu, else the host's cores divided by its workers
  int64_t seed = 1;
  bool deterministic = false;
  int64_t rounds = 0;  // exchanges with the servers in an epoch; 0: chosen by the number of workers
  double exchange_share = 0;  // exchange_schedule.h
  bool text = false;
  std::string simd = "auto";
  // Of algorithms that know fields:
  bool keep_fields = false;
  int64_t fields = 0;  // 0: as many as the data has; otherwise field numbers are taken modulo this
};

// The resolved loss; of "auto": logistic.
Loss LossFor(const CommonParams& params);

inline constexpr int64_t kCsvHashBits = 22;

// "comma", "semicolon", "tab" or "bar", as `delimiter` names it.
char DelimiterOf(std::string_view name);

enum class Normalization : uint8_t { kNone = 0, kRows = 1, kColumns = 2 };

// The meaning of `normalize`. InvalidArgument for columns of a format that has none.
Result<Normalization> NormalizationOf(std::string_view normalize, data::ExampleFormat format);

// The formats that FM, linear and logistic read; ffm reads all but the first.
inline constexpr std::string_view kFormats = "libsvm libffm csv tsv jsonl tfrecord parquet";

// One of kFormats, or "json" for jsonl; InvalidArgument for any other.
Result<data::ExampleFormat> FormatOf(std::string_view name);
std::string_view NameOf(data::ExampleFormat format);

// Errors as data::Corpus::Open.
Result<data::Corpus> OpenExamples(const std::vector<std::string>& files,
                                  data::ExampleFormat format);

// The share that `max_bad` names, in [0, 1]; 0 if it is empty. InvalidArgument, one sentence.
Result<double> MaxBadOf(std::string_view share);

// The passes that a training of so many examples makes if it is not told: 2, or as many as give a
// table's columns 200,000 steps, at most 30.
int64_t EpochsFor(uint64_t examples, Normalization normalization);

// The part of the data that `fold` holds out, as [begin, end) of 1; empty for none.
// InvalidArgument, one sentence.
Result<std::pair<double, double>> FoldRange(std::string_view fold);

// The share that `validation` names, in (0, 0.5]; 0 if it is empty. InvalidArgument, one sentence.
Result<double> ValidationShare(std::string_view validation);

// How the files are read: what a table's columns are comes from the beginning of `corpus`. Numbers
// of columns that are to be scaled, and have no scales in params.trained yet, are read as raw
// values. `training`: otherwise the label may be missing. Errors as data::FindColumns;
// InvalidArgument for libsvm where fields are kept.
Result<data::ExampleOptions> OptionsOf(const CommonParams& params, data::ExampleFormat format,
                                       const data::Corpus& corpus, bool training);

// The two parts of it that need no data: the options but for csv and raw_columns, and how a table's
// columns are interpreted.
Result<data::ExampleOptions> BareOptionsOf(const CommonParams& params, data::ExampleFormat format,
                                           bool training);
data::CsvOptions CsvOptionsOf(const CommonParams& params, bool training);

// The table's entries about what is learnt, with an algorithm's own default for `loss`.
template <typename Params>
std::vector<ParamField<Params>> ObjectiveFields(std::string_view loss) {
  using enum ParamType;
  return {
      {{"loss", "objective", kChoice, 0, 0, false,
        "auto logistic hinge squared quantile poisson softmax", loss,
        "What is learnt. logistic, hinge: one of two classes; softmax: one of several; squared: a "
        "number, its mean; quantile: a number, its quantile; poisson: a count; auto: by the labels "
        "of the first lines."},
       &Params::loss},
      {{"quantile", "tau", kReal, 0, 0.9999, true, "", "0.5",
        "Of the loss quantile: the share of labels below the prediction; 0.5: the median."},
       &Params::quantile},
      {{"weight", "", kText, 0, 0, false, "", "",
        "Tables: the column of the examples' weights, which is no feature."},
       &Params::weight},
      {{"class_weight", "", kText, 0, 0, false, "", "",
        "Weights of the classes, CLASS=WEIGHT,CLASS=WEIGHT, those not named 1; balanced: classes "
        "count alike, however many examples they have."},
       &Params::class_weight},
      {{"key", "", kText, 0, 0, false, "", "",
        "Tables: a column that names the examples, which is no feature; `shoal predict` writes "
        "it."},
       &Params::key},
      {{"validation", "", kText, 0, 0, false, "", "",
        "A share of the data such as 10%, or (flag) a file, that is not learnt from but measured "
        "after each epoch: the training ends by itself, and the best epoch's model is saved."},
       &Params::validation},
      {{"patience", "", kInt, 1, 100000, false, "", "3",
        "With validation: epochs without a lower loss after which the training ends."},
       &Params::patience},
      {{"from", "", kText, 0, 0, false, "", "",
        "A saved model to continue: a directory, or a folder of a store. Columns, classes, scales "
        "and the parameters that are not given are the model's."},
       &Params::from},
      {{"keep_optimizer", "", kBool, 0, 0, false, "", "true",
        "Save the optimizer's state beside the model, without which it cannot be continued."},
       &Params::keep_optimizer},
      {{"fold", "", kText, 0, 0, false, "", "",
        "I/K: the I-th of K random parts is not learnt from but measured at the end, by one "
        "worker; "
        "`shoal train --folds K` runs them all."},
       &Params::fold},
  };
}

// The other entries, with an algorithm's own default for `epochs`.
template <typename Params>
std::vector<ParamField<Params>> CommonFields(std::string_view epochs) {
  using enum ParamType;
  return {
      {{"epochs", "", kInt, epochs == "auto" ? 0.0 : 1.0, 100000, false, "", epochs,
        epochs == "auto" ? "Passes over the data; auto: 2, and more for a csv table of fewer than "
                           "100,000 examples, up to 30; with validation at most 100."
                         : "Passes over the data."},
       &Params::epochs},
      {{"normalize", "", kChoice, 0, 0, false, "auto rows columns none true false", "auto",
        "rows (or true): divide the values of every example by their Euclidean length; columns "
        "(tables): give every numeric column mean 0 and deviation 1; none (or false): take values "
        "as "
        "they are; auto: columns for tables, else rows."},
       &Params::normalize},
      {{"bias", "", kBool, 0, 0, false, "", "true", "A weight that every example has."},
       &Params::bias},
      {{"hash_bits", "", kInt, 0, 31, false, "", "0",
        "Hash features to this many bits; 0: features keep their numbers (tables: 22)."},
       &Params::hash_bits},
      {{"label", "", kText, 0, 0, false, "", "",
        "Tables (csv, tsv, jsonl, tfrecord, parquet): the column of the label, by name or number "
        "from 1; "
        "the "
        "first if not given."},
       &Params::label},
      {{"positive", "", kText, 0, 0, false, "", "",
        "Tables: the class of the label that is predicted; the greater of the two if not given."},
       &Params::positive},
      {{"categorical", "", kText, 0, 0, false, "", "",
        "Tables: columns whose numbers are names of classes, separated by commas."},
       &Params::categorical},
      {{"delimiter", "", kChoice, 0, 0, false, "comma semicolon tab bar", "comma",
        "csv: what stands between two cells."},
       &Params::delimiter},
      {{"header", "", kChoice, 0, 0, false, "auto yes no", "auto",
        "csv: whether the first line names the columns; auto: if none of its cells is a number."},
       &Params::header},
      {{"max_bad", "", kText, 0, 0, false, "", "",
        "Tables: the share of malformed rows that is left out, such as 0.1%."},
       &Params::max_bad},
  };
}

// Of how a training runs, whatever it learns.
template <typename Params>
std::vector<ParamField<Params>> RunFields() {
  using enum ParamType;
  return {
      {{"threads", "", kInt, 0, 1024, false, "", "auto",
        "Training threads of a worker: its resources.cpu, else the host's cores divided by its "
        "workers."},
       &Params::threads},
      {{"seed", "", kInt, 0, 9e15, false, "", "1", "Start of all random numbers."}, &Params::seed},
      {{"deterministic", "", kBool, 0, 0, false, "", "false",
        "The same model for the same seed, data and number of tasks; one thread a worker."},
       &Params::deterministic},
      {{"rounds", "", kInt, 0, 1e6, false, "", "auto",
        "Exchanges of a worker with the servers in an epoch; auto: as many as are worth their "
        "time."},
       &Params::rounds},
      {{"exchange_share", "", kReal, 0, 0.9, false, "", "0",
        "The most of a worker's time that exchanges and waiting for them may take, such as 0.1: "
        "where they cost more, they become rarer, which can cost quality. 0: as often as quality "
        "needs, and more often only for a tenth of the time."},
       &Params::exchange_share},
      {{"text", "", kBool, 0, 0, false, "", "false", "Also write the model as text."},
       &Params::text},
      {{"simd", "", kChoice, 0, 0, false, "auto avx512 avx2 sse4 scalar", "auto",
        "Vector instructions: the best that the machine has, or the named ones."},
       &Params::simd},
  };
}

// `own`, then those of all.
template <typename Params>
std::vector<ParamField<Params>> WithCommonFields(std::vector<ParamField<Params>> own,
                                                 std::string_view epochs,
                                                 std::string_view loss = "auto") {
  for (auto& field : ObjectiveFields<Params>(loss)) own.push_back(std::move(field));
  for (auto& field : CommonFields<Params>(epochs)) own.push_back(std::move(field));
  for (auto& field : RunFields<Params>()) own.push_back(std::move(field));
  return own;
}

}  // namespace shoal::learn::sparse
