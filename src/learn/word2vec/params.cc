#include "learn/word2vec/params.h"

#include <fmt/format.h>

#include <array>

#include "learn/params/param_fields.h"

namespace shoal::learn::word2vec {
namespace {

using Field = ParamField<Params>;

constexpr auto kInt = ParamType::kInt;
constexpr auto kReal = ParamType::kReal;
constexpr auto kBool = ParamType::kBool;
constexpr auto kChoice = ParamType::kChoice;

const std::array kFields = {
    Field{{"dim", "size vector_size", kInt, 1, 4096, false, "", "100", "Length of a vector."},
          &Params::dim},
    Field{{"window", "", kInt, 1, 100, false, "", "5",
           "Words on each side that count as context, at most; the actual width is drawn anew for "
           "each word."},
          &Params::window},
    Field{
        {"negative", "", kInt, 1, 100, false, "", "5", "Noise words drawn against each true pair."},
        &Params::negative},
    Field{{"sample", "", kReal, 0, 1, false, "", "0.001",
           "Words more frequent than this share of the text are thinned out; 0 keeps all."},
          &Params::sample},
    Field{{"min_count", "", kInt, 1, 1e12, false, "", "5",
           "Words that occur less often are left out."},
          &Params::min_count},
    Field{{"alpha", "", kReal, 0, 1, true, "", "auto",
           "Learning rate at the start: 0.025, with cbow 0.05."},
          &Params::alpha},
    Field{{"min_alpha", "", kReal, 0, 1, false, "", "auto",
           "Learning rate at the end, reached linearly: alpha / 10000."},
          &Params::min_alpha},
    Field{{"epochs", "iter", kInt, 1, 100000, false, "", "5", "Passes over the text."},
          &Params::epochs},
    Field{{"cbow", "", kBool, 0, 0, false, "", "false",
           "Predict a word from the mean of its contexts instead of each context by itself."},
          &Params::cbow},
    Field{{"hs", "hierarchical_softmax", kBool, 0, 0, false, "", "false",
           "Predict by hierarchical softmax, word2vec's Huffman tree, instead of noise words."},
          &Params::hs},
    Field{{"threads", "", kInt, 0, 1024, false, "", "auto",
           "Training threads of a worker: its resources.cpu, else the host's cores divided by its "
           "workers."},
          &Params::threads},
    Field{{"seed", "", kInt, 0, 9e15, false, "", "1", "Start of all random numbers."},
          &Params::seed},
    Field{{"deterministic", "", kBool, 0, 0, false, "", "false",
           "The same model for the same seed, data and number of tasks; one thread a worker, "
           "slower."},
          &Params::deterministic},
    Field{
        {"hot_rows", "", kInt, 0, 1e9, false, "", "8192",
         "Most frequent rows, at most, of which each thread of several trains a copy, as far as 24 "
         "MiB hold the copies of a worker; 0: none."},
        &Params::hot_rows},
    Field{{"exchange_words", "", kInt, 0, 1e12, false, "", "auto",
           "Words of a worker between two rounds of exchange with the servers."},
          &Params::exchange_words},
    Field{{"stale_words", "", kInt, 0, 1e12, false, "", "auto",
           "Words of a worker within which every changed row is exchanged."},
          &Params::stale_words},
    Field{{"wire", "", kChoice, 0, 0, false, "auto f32 bf16 int8_bf16 int8", "auto",
           "How rows travel between workers and servers: bf16 is half of f32's bytes, int8 a "
           "quarter, int8_bf16 (int8 to the servers, bf16 back) three eighths; auto is int8 with "
           "several workers, f32 with one."},
          &Params::wire},
    Field{{"simd", "", kChoice, 0, 0, false, "auto avx512 avx2 sse4 scalar", "auto",
           "Vector instructions: the best that the machine has, or the named ones."},
          &Params::simd},
};

// Retired parameters (ADR 190).
constexpr std::string_view kOneNoise =
    "all contexts of a window share its noise words now, as group: 0 meant";
const std::array kRetired = {
    Param{"group", "", kInt, 0, 0, false, "", "", kOneNoise, true},
    Param{"group_frequent", "", kInt, 0, 0, false, "", "", kOneNoise, true},
    Param{"noise_uses", "", kInt, 0, 0, false, "", "",
          "every noise word is drawn anew now, as noise_uses: 1 meant", true},
};

}  // namespace

ps::Wire WireOf(const Params& params, int workers) {
  using enum ps::ValueType;
  if (params.wire == "auto" && workers > 1) return {kInt8, kInt8};
  if (params.wire == "bf16") return {kBf16, kBf16};
  if (params.wire == "int8_bf16") return {kInt8, kBf16};
  if (params.wire == "int8") return {kInt8, kInt8};
  return {};
}

std::span<const Param> ParamTable() {
  static const std::vector<Param> table = [] {
    std::vector<Param> all = ParamsOf<Params>(kFields);
    all.insert(all.end(), kRetired.begin(), kRetired.end());
    return all;
  }();
  return table;
}

Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file) {
  Params params;
  TRY(CheckNoRetiredParams(kRetired, learn, file));
  TRY(ParseFields<Params>(kFields, learn, file, &params));
  if (params.cbow && !learn.contains("alpha")) params.alpha = 0.05;
  if (!learn.contains("min_alpha")) params.min_alpha = params.alpha * 1e-4;
  if (const auto noise = learn.find("negative"); params.hs && noise != learn.end()) {
    return InvalidArgument(FormatPlace(file, noise->second, "negative") +
                           "hs has no noise words; leave out one of the two");
  }
  if (params.min_alpha > params.alpha) {
    const auto given = learn.find("min_alpha");
    return InvalidArgument(fmt::format(
        "{}got {}, expected a number not above alpha ({})",
        given == learn.end() ? "learn.min_alpha: " : FormatPlace(file, given->second, "min_alpha"),
        params.min_alpha, params.alpha));
  }
  TRY(OneThreadIfDeterministic(params, learn, file));
  return params;
}

std::map<std::string, std::string> ToText(const Params& params) {
  return FieldsToText<Params>(kFields, params);
}

}  // namespace shoal::learn::word2vec
