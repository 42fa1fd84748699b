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

namespace shoal::learn::sparse {

// Plain data; an algorithm's own parameters derive from it.
struct CommonParams {
  int64_t epochs = 2;  // 0: EpochsFor
  std::string normalize = "auto";
  bool bias = true;
  int64_t hash_bits = 0;  // 0 with CSV: kCsvHashBits
  std::string label;      // of CSV, as the five after it
  std::string positive;
  std::string categorical;
  std::string delimiter = "comma";
  std::string header = "auto";
  std::optional<data::CsvSchema> trained;  // what the five and `label` came to in training
  int64_t threads = 0;  // 0: its resources.cpu, else the host's cores divided by its workers
  int64_t seed = 1;
  bool deterministic = false;
  int64_t rounds = 0;  // exchanges with the servers in an epoch; 0: chosen by the number of workers
  bool text = false;
  std::string simd = "auto";
  // Of algorithms that know fields:
  bool keep_fields = false;
  int64_t fields = 0;  // 0: as many as the data has; otherwise field numbers are taken modulo this
};

inline constexpr int64_t kCsvHashBits = 22;

// "comma", "semicolon", "tab" or "bar", as `delimiter` names it.
char DelimiterOf(std::string_view name);

enum class Normalization : uint8_t { kNone = 0, kRows = 1, kColumns = 2 };

// The meaning of `normalize`. InvalidArgument for columns of a format that has none.
Result<Normalization> NormalizationOf(std::string_view normalize, data::ExampleFormat format);

// "libsvm", "libffm", "csv"; InvalidArgument for any other.
Result<data::ExampleFormat> FormatOf(std::string_view name);
std::string_view NameOf(data::ExampleFormat format);

// The passes that a training of so many examples makes if it is not told: 2, or as many as give a
// table's columns 200,000 steps, at most 30.
int64_t EpochsFor(uint64_t examples, Normalization normalization);

// How the files are read: what CSV's columns are comes from the first line of `corpus`. Numbers of
// columns that are to be scaled, and have no scales in params.trained yet, are read as raw values.
// `binary_labels`: for training; otherwise the label may be missing from CSV. Errors as
// data::CsvColumns::Make; InvalidArgument for libsvm where fields are kept.
Result<data::ExampleOptions> OptionsOf(const CommonParams& params, data::ExampleFormat format,
                                       const data::Corpus& corpus, bool binary_labels);

// The table's entries, where an algorithm's own default for `epochs` is the number in `epochs`.
template <typename Params>
std::vector<ParamField<Params>> CommonFields(std::string_view epochs) {
  using enum ParamType;
  return {
      {{"epochs", "", kInt, epochs == "auto" ? 0.0 : 1.0, 100000, false, "", epochs,
        epochs == "auto" ? "Passes over the data; auto: 2, and more for a csv table of fewer than "
                           "100,000 examples, up to 30."
                         : "Passes over the data."},
       &Params::epochs},
      {{"normalize", "", kChoice, 0, 0, false, "auto rows columns none true false", "auto",
        "rows (or true): divide the values of every example by their Euclidean length; columns "
        "(csv): give every numeric column mean 0 and deviation 1; none (or false): take values as "
        "they are; auto: columns for csv, else rows."},
       &Params::normalize},
      {{"bias", "", kBool, 0, 0, false, "", "true", "A weight that every example has."},
       &Params::bias},
      {{"hash_bits", "", kInt, 0, 31, false, "", "0",
        "Hash features to this many bits; 0: features keep their numbers (csv: 22)."},
       &Params::hash_bits},
      {{"label", "", kText, 0, 0, false, "", "",
        "csv: the column of the label, by name or number from 1; the first if not given."},
       &Params::label},
      {{"positive", "", kText, 0, 0, false, "", "",
        "csv: the class of the label that is predicted; the greater of the two if not given."},
       &Params::positive},
      {{"categorical", "", kText, 0, 0, false, "", "",
        "csv: columns whose numbers are names of classes, separated by commas."},
       &Params::categorical},
      {{"delimiter", "", kChoice, 0, 0, false, "comma semicolon tab bar", "comma",
        "csv: what stands between two cells."},
       &Params::delimiter},
      {{"header", "", kChoice, 0, 0, false, "auto yes no", "auto",
        "csv: whether the first line names the columns; auto: if none of its cells is a number."},
       &Params::header},
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
                                                 std::string_view epochs) {
  for (auto& field : CommonFields<Params>(epochs)) own.push_back(std::move(field));
  return own;
}

}  // namespace shoal::learn::sparse
