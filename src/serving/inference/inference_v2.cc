// Open Inference Protocol v2, REST:
// https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "data/examples/csv.h"
#include "serving/inference/batch.h"
#include "serving/inference/inference.h"
#include "serving/inference/json_slices.h"

namespace shoal::serving {
namespace {

using learn::sparse::Scorer;
using learn::sparse::Scores;

struct Tensor {
  std::string name;
  std::string datatype;
  std::vector<uint64_t> shape;
  std::vector<std::string_view> data;
};

struct V2Request {
  std::string id;  // quoted; empty: none
  std::vector<Tensor> inputs;
  std::set<std::string> outputs;  // empty: those that a model gives by default
  size_t top = 0;                 // of neighbours
};

Result<std::string> TextMember(const JsonMembers& members, std::string_view name) {
  const std::string_view* const slice = FindMember(members, name);
  if (slice == nullptr) return InvalidArgument(fmt::format("it lacks {}", name));
  auto text = TextOfSlice(*slice);
  return text.ok() ? std::move(text) : text.status().With(name);
}

Result<std::vector<uint64_t>> ShapeOf(const JsonMembers& members) {
  constexpr size_t kMaxRank = 8;
  const std::string_view* const slice = FindMember(members, "shape");
  if (slice == nullptr) return InvalidArgument("it lacks shape");
  TRY_ASSIGN(const auto elements, ElementsOf(*slice, kMaxRank));
  std::vector<uint64_t> shape;
  for (const std::string_view element : elements) {
    uint64_t size = 0;
    const char* const end = element.data() + element.size();
    const auto parsed = std::from_chars(element.data(), end, size);
    if (parsed.ec != std::errc() || parsed.ptr != end || size > UINT32_MAX)
      return InvalidArgument(fmt::format("shape: got {}, expected a length", element));
    shape.push_back(size);
  }
  return shape;
}

// Whether a JSON value can be one of the datatype, or is null for a missing cell.
bool Fits(std::string_view datatype, std::string_view value) {
  if (value == "null") return true;
  if (datatype == "BYTES") return value.front() == '"';
  if (datatype == "BOOL") return value == "true" || value == "false";
  const bool number = value.front() == '-' || (value.front() >= '0' && value.front() <= '9');
  const bool whole = value.find_first_of(".eE") == std::string_view::npos;
  return number && (datatype.starts_with("FP") || whole);
}

bool IsDatatype(std::string_view name) {
  static constexpr std::string_view kKnown[] = {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64",
                                                "INT8", "INT16", "INT32",  "INT64",  "FP16",
                                                "FP32", "FP64",  "BYTES"};
  return std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown);
}

// `data` must have as many elements as the shape says.
Status ReadData(const JsonMembers& members, size_t most, Tensor* tensor) {
  const std::string_view* const slice = FindMember(members, "data");
  if (slice == nullptr)
    return InvalidArgument("it lacks data; the binary extension of the protocol is not supported");
  TRY_ASSIGN(tensor->data, ElementsOf(*slice, most));
  uint64_t expected = 1;
  for (const uint64_t size : tensor->shape) expected = std::min<uint64_t>(expected * size, 1 << 30);
  if (tensor->data.size() != expected || tensor->shape.empty()) {
    return InvalidArgument(fmt::format("data has {} elements, expected {} as the shape [{}] says",
                                       tensor->data.size(), expected,
                                       fmt::join(tensor->shape, ",")));
  }
  for (size_t i = 0; i < tensor->data.size(); ++i) {
    if (Fits(tensor->datatype, tensor->data[i])) continue;
    constexpr size_t kShown = 40;
    return InvalidArgument(fmt::format("element {}: got {}, expected {}", i,
                                       tensor->data[i].substr(0, kShown), tensor->datatype));
  }
  return Status::Ok();
}

Result<Tensor> ReadTensor(std::string_view slice, size_t most) {
  TRY_ASSIGN(const JsonMembers members, MembersOf(slice));
  Tensor tensor;
  TRY_ASSIGN(tensor.name, TextMember(members, "name"));
  TRY_ASSIGN(tensor.datatype, TextMember(members, "datatype"));
  if (!IsDatatype(tensor.datatype)) {
    return InvalidArgument(
        fmt::format("datatype: got {}, expected one such as FP64, INT64, BOOL or BYTES",
                    EscapedUtf8(tensor.datatype.substr(0, 40))));
  }
  TRY_ASSIGN(tensor.shape, ShapeOf(members));
  TRY(ReadData(members, most, &tensor));
  return tensor;
}

Status ReadOutputs(std::string_view slice, std::set<std::string>* outputs) {
  constexpr size_t kMaxOutputs = 16;
  TRY_ASSIGN(const auto elements, ElementsOf(slice, kMaxOutputs));
  for (const std::string_view element : elements) {
    TRY_ASSIGN(const JsonMembers members, MembersOf(element));
    auto name = TextMember(members, "name");
    if (!name.ok()) return name.status().With("outputs");
    outputs->insert(std::move(*name));
  }
  return Status::Ok();
}

Result<V2Request> ReadRequest(std::string_view body, size_t most, const InferenceLimits& limits) {
  constexpr size_t kMaxInputs = 100'000;
  TRY_ASSIGN(const JsonMembers members, MembersOf(body));
  V2Request request;
  if (FindMember(members, "id") != nullptr) {
    TRY_ASSIGN(const std::string id, TextMember(members, "id"));
    request.id = Quoted(id);
  }
  const std::string_view* const inputs = FindMember(members, "inputs");
  if (inputs == nullptr) return InvalidArgument("the body lacks inputs");
  TRY_ASSIGN(const auto elements, ElementsOf(*inputs, kMaxInputs));
  for (size_t i = 0; i < elements.size(); ++i) {
    auto tensor = ReadTensor(elements[i], most);
    if (!tensor.ok()) return tensor.status().With(fmt::format("input {}", i));
    request.inputs.push_back(std::move(*tensor));
  }
  if (const auto* const outputs = FindMember(members, "outputs"); outputs != nullptr)
    TRY(ReadOutputs(*outputs, &request.outputs));
  const std::string_view* top = nullptr;
  JsonMembers parameters;
  if (const auto* const given = FindMember(members, "parameters"); given != nullptr) {
    TRY_ASSIGN(parameters, MembersOf(*given));
    top = FindMember(parameters, "top");
  }
  TRY_ASSIGN(request.top, CountOf(top, limits.max_neighbours));
  return request;
}

// The reply up to its outputs, and after them.
std::string BeginReply(const ServedModel& model, const V2Request& request) {
  std::string body = fmt::format("{{\"model_name\":{},", Quoted(model.name()));
  if (model.version() > 0) body += fmt::format("\"model_version\":\"{}\",", model.version());
  if (!request.id.empty()) body += fmt::format("\"id\":{},", request.id);
  return body + "\"outputs\":[";
}
constexpr std::string_view kEndReply = "]}\n";

std::string OutputHead(std::string_view name, std::string_view datatype,
                       std::initializer_list<size_t> shape) {
  return fmt::format("{{\"name\":\"{}\",\"datatype\":\"{}\",\"shape\":[{}],\"data\":[", name,
                     datatype, fmt::join(shape, ","));
}

// Of an output that is asked for, or by default.
class Outputs {
 public:
  Outputs(const V2Request& request, std::initializer_list<std::string_view> known)
      : asked_(request.outputs), known_(known) {}
  Status Check() const {
    for (const std::string& name : asked_) {
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      return InvalidArgument(EscapedUtf8(fmt::format("the model has no output '{}', expected {}",
                                                     name, fmt::join(known_, " or "))));
    }
    return Status::Ok();
  }
  bool Wants(std::string_view name, bool by_default) const {
    return asked_.empty() ? by_default : asked_.contains(std::string(name));
  }

 private:
  const std::set<std::string>& asked_;
  const std::vector<std::string_view> known_;
};

// One value for each instance: [N] or [N, 1].
Status CheckRows(const Tensor& tensor, const InferenceLimits& limits) {
  const bool rows =
      tensor.shape.size() == 1 || (tensor.shape.size() == 2 && tensor.shape.back() == 1);
  if (!rows) {
    return InvalidArgument(fmt::format("input '{}': got the shape [{}], expected [N] or [N,1]",
                                       tensor.name, fmt::join(tensor.shape, ",")));
  }
  if (tensor.data.size() <= limits.max_batch) return Status::Ok();
  return ResourceExhausted(fmt::format("the batch has {} instances, at most {} are taken",
                                       tensor.data.size(), limits.max_batch));
}

Result<Scores> ScoreRequest(const Scorer& scorer, V2Request* request,
                            const InferenceLimits& limits) {
  for (const Tensor& tensor : request->inputs) TRY(CheckRows(tensor, limits));
  if (scorer.options().csv == nullptr) {
    if (request->inputs.size() != 1 || request->inputs.front().name != "examples" ||
        request->inputs.front().datatype != "BYTES") {
      return InvalidArgument(
          "the model has no columns: expected one input 'examples' of BYTES, with texts such as "
          "\"3:1 7:0.5\"");
    }
    return ScoreRows(scorer, request->inputs.front().data);
  }
  std::vector<InputColumn> columns;
  for (Tensor& tensor : request->inputs)
    columns.push_back({std::move(tensor.name), std::move(tensor.data)});
  return ScoreColumns(scorer, columns);
}

void AppendScores(const Scorer& scorer, const Scores& scores, size_t count, std::string* to) {
  *to += scores.width == 1 ? OutputHead(scorer.output(), "FP64", {count})
                           : OutputHead(scorer.output(), "FP64", {count, scores.width});
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) *to += ',';
    const size_t at = to->size();
    AppendScore(scorer, scores, i, to);
    if (scores.width == 1) continue;
    to->erase(at, 1);  // data is flat
    to->pop_back();
  }
  *to += "]}";
}

void AppendClasses(const Scorer& scorer, const Scores& scores, size_t count, std::string* to) {
  *to += OutputHead("class", "BYTES", {count});
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) *to += ',';
    *to += Quoted(scorer.ClassOf(scores, i));
  }
  *to += "]}";
}

Result<InferenceReply> InferRows(const ServedModel& model, V2Request request,
                                 const InferenceLimits& limits) {
  const Scorer& scorer = *model.scorer();
  const bool numbers = scorer.reading().target.loss.predicts_numbers();
  const std::string_view main = scorer.output();
  const Outputs outputs(request, numbers ? std::initializer_list<std::string_view>{main}
                                         : std::initializer_list<std::string_view>{main, "class"});
  TRY(outputs.Check());
  TRY_ASSIGN(const Scores scores, ScoreRequest(scorer, &request, limits));
  InferenceReply reply{BeginReply(model, request), scores.values.size() / scores.width};
  const bool has_main = outputs.Wants(main, true);
  if (has_main) AppendScores(scorer, scores, reply.instances, &reply.body);
  if (outputs.Wants("class", false)) {
    if (has_main) reply.body += ',';
    AppendClasses(scorer, scores, reply.instances, &reply.body);
  }
  reply.body += kEndReply;
  return reply;
}

// The rows of `words`, or a vector for each query.
struct Queries {
  std::vector<uint64_t> rows;               // of words
  std::vector<std::vector<float>> vectors;  // without words
};

Result<Queries> ReadQueries(const ServedVectors& vectors, const V2Request& request,
                            const InferenceLimits& limits) {
  const Tensor* const tensor = request.inputs.size() == 1 ? &request.inputs.front() : nullptr;
  Queries queries;
  if (tensor != nullptr && tensor->name == "words" && tensor->datatype == "BYTES") {
    TRY(CheckRows(*tensor, limits));
    for (size_t i = 0; i < tensor->data.size(); ++i) {
      const auto word = TextOfSlice(tensor->data[i]);
      if (!word.ok()) return OfInstance(i, word.status());
      const auto row = RowOfWord(vectors, *word);
      if (!row.ok()) return OfInstance(i, row.status());
      queries.rows.push_back(*row);
    }
    return queries;
  }
  const uint64_t dim = vectors.index.dim();
  if (tensor == nullptr || tensor->name != "vectors" || tensor->datatype != "FP32" ||
      tensor->shape.size() != 2 || tensor->shape[1] != dim || tensor->shape[0] > limits.max_batch) {
    return InvalidArgument(fmt::format(
        "expected one input: 'words' of BYTES, or 'vectors' of FP32 with the shape [N,{}], N at "
        "most {}",
        dim, limits.max_batch));
  }
  for (uint64_t i = 0; i < tensor->shape[0]; ++i) {
    std::vector<float>& query = queries.vectors.emplace_back();
    for (uint64_t k = 0; k < dim; ++k) {
      const std::string_view text = tensor->data[i * dim + k];
      float value = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
        return OfInstance(i, InvalidArgument("it has a number that 32 bits cannot hold"));
      query.push_back(value);
    }
  }
  return queries;
}

Result<InferenceReply> InferVectors(const ServedModel& model, const V2Request& request,
                                    const InferenceLimits& limits) {
  const ServedVectors& vectors = *model.vectors();
  const Outputs outputs(request, {"neighbours", "similarities", "vectors"});
  TRY(outputs.Check());
  TRY_ASSIGN(const Queries queries, ReadQueries(vectors, request, limits));
  const size_t count = queries.rows.size() + queries.vectors.size();
  const size_t excluded = queries.rows.empty() ? 0 : 1;  // the word itself
  const size_t top = std::min<size_t>(request.top, vectors.index.rows() - excluded);
  const bool near = outputs.Wants("neighbours", true) || outputs.Wants("similarities", true);
  std::string words = OutputHead("neighbours", "BYTES", {count, top});
  std::string similarities = OutputHead("similarities", "FP32", {count, top});
  std::string rows = OutputHead("vectors", "FP32", {count, vectors.index.dim()});
  for (size_t i = 0; i < count; ++i) {
    const std::span<const uint64_t> itself(queries.rows.data() + i, excluded);
    const std::span<const float> query =
        excluded > 0 ? vectors.Row(queries.rows[i]) : std::span<const float>(queries.vectors[i]);
    for (const float value : query)
      fmt::format_to(std::back_inserter(rows), "{}{}", rows.ends_with('[') ? "" : ",",
                     std::isfinite(value) ? value : 0.0f);
    if (!near) continue;
    const std::span<const float> search =
        excluded > 0 ? vectors.index.unit(queries.rows[i]) : query;
    for (const model::Neighbour& one : vectors.index.Nearest(search, top, itself)) {
      if (!words.ends_with('[')) words += ',';
      words += Quoted(vectors.index.word(one.row));
      fmt::format_to(std::back_inserter(similarities), "{}{}",
                     similarities.ends_with('[') ? "" : ",", one.similarity);
    }
  }
  InferenceReply reply{BeginReply(model, request), count};
  const auto add = [&](std::string_view name, bool by_default, const std::string& text) {
    if (!outputs.Wants(name, by_default)) return;
    reply.body += (reply.body.ends_with('[') ? "" : ",") + text + "]}";
  };
  add("neighbours", true, words);
  add("similarities", true, similarities);
  add("vectors", false, rows);
  reply.body += kEndReply;
  return reply;
}

std::string TensorMetadata(std::string_view name, std::string_view datatype,
                           std::string_view shape) {
  return fmt::format("{{\"name\":{},\"datatype\":\"{}\",\"shape\":[{}]}}", Quoted(name), datatype,
                     shape);
}

// Whether the training saw texts only, or took numbers for names.
bool IsTextColumn(const data::CsvColumns& columns, const std::string& name) {
  const std::vector<std::string>& names = columns.schema.names;
  const auto place = std::find(names.begin(), names.end(), name) - names.begin();
  const data::CsvColumns::Column& column = columns.columns[static_cast<size_t>(place)];
  return column.categorical || (columns.scaled && column.scale.factor == 0);
}

}  // namespace

Result<InferenceReply> InferV2(const ServedModel& model, std::string_view body,
                               const InferenceLimits& limits) {
  const size_t width = model.vectors() == nullptr ? 1 : model.vectors()->index.dim();
  TRY_ASSIGN(V2Request request, ReadRequest(body, limits.max_batch * width + 1, limits));
  if (model.vectors() != nullptr) return InferVectors(model, request, limits);
  return InferRows(model, std::move(request), limits);
}

std::string MetadataV2(const ServedModel& model) {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  if (const ServedVectors* const vectors = model.vectors(); vectors != nullptr) {
    const std::string dim = std::to_string(vectors->index.dim());
    inputs = {TensorMetadata("words", "BYTES", "-1"),
              TensorMetadata("vectors", "FP32", "-1," + dim)};
    outputs = {TensorMetadata("neighbours", "BYTES", "-1,-1"),
               TensorMetadata("similarities", "FP32", "-1,-1"),
               TensorMetadata("vectors", "FP32", "-1," + dim)};
  } else {
    const Scorer& scorer = *model.scorer();
    for (const std::string& column : scorer.columns())
      inputs.push_back(TensorMetadata(
          column, IsTextColumn(*scorer.options().csv, column) ? "BYTES" : "FP64", "-1"));
    if (inputs.empty()) inputs.push_back(TensorMetadata("examples", "BYTES", "-1"));
    const size_t classes = scorer.reading().classes.size();
    const bool several = std::string_view(scorer.output()) == "probabilities";
    outputs.push_back(TensorMetadata(scorer.output(), "FP64",
                                     several ? fmt::format("-1,{}", classes) : std::string("-1")));
    if (!scorer.reading().target.loss.predicts_numbers())
      outputs.push_back(TensorMetadata("class", "BYTES", "-1"));
  }
  std::string classes;
  if (model.scorer() != nullptr) {
    for (const std::string& name : model.scorer()->reading().classes)
      classes += (classes.empty() ? "" : ",") + Quoted(name);
  }
  return fmt::format(
      "{{\"name\":{},\"versions\":[{}],\"platform\":{},\"inputs\":[{}],\"outputs\":[{}]{}}}\n",
      Quoted(model.name()),
      model.version() > 0 ? fmt::format("\"{}\"", model.version()) : std::string(),
      Quoted(model.format()), fmt::join(inputs, ","), fmt::join(outputs, ","),
      classes.empty() ? "" : ",\"parameters\":{\"classes\":[" + classes + "]}");
}

}  // namespace shoal::serving
