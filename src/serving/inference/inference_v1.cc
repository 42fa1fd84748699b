// The REST interface of TensorFlow Serving:
// https://www.tensorflow.org/tfx/serving/api_rest#predict_api
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "serving/inference/batch.h"
#include "serving/inference/inference.h"
#include "serving/inference/json_slices.h"

namespace shoal::serving {
namespace {

using learn::sparse::Scorer;
using learn::sparse::Scores;

// `signature_name` is taken whatever it says: a model has one signature.
Status CheckMembers(const JsonMembers& members, bool vectors) {
  for (const auto& [name, slice] : members) {
    if (name == "instances" || name == "signature_name" || (name == "inputs" && !vectors) ||
        (name == "top" && vectors))
      continue;
    return InvalidArgument(fmt::format("the body has the unknown field {}, expected instances{}",
                                       Quoted(name), vectors ? " or top" : " or inputs"));
  }
  return Status::Ok();
}

Result<std::vector<InputColumn>> ColumnsOf(std::string_view inputs, size_t most) {
  TRY_ASSIGN(const JsonMembers members, MembersOf(inputs));
  std::vector<InputColumn> columns;
  for (const auto& [name, slice] : members) {
    auto values = ElementsOf(slice, most);
    if (!values.ok()) return values.status().With(EscapedUtf8(name));
    columns.push_back({name, std::move(*values)});
  }
  return columns;
}

Result<InferenceReply> PredictRows(const Scorer& scorer, const JsonMembers& members,
                                   const InferenceLimits& limits) {
  const std::string_view* const instances = FindMember(members, "instances");
  const std::string_view* const inputs = FindMember(members, "inputs");
  if ((instances == nullptr) == (inputs == nullptr)) {
    return InvalidArgument("the body has " +
                           std::string(instances == nullptr ? "neither" : "both") +
                           " instances and inputs, expected one of them");
  }
  Scores scores;
  if (instances != nullptr) {
    TRY_ASSIGN(const auto rows, ElementsOf(*instances, limits.max_batch));
    TRY_ASSIGN(scores, ScoreRows(scorer, rows));
  } else {
    TRY_ASSIGN(const auto columns, ColumnsOf(*inputs, limits.max_batch));
    TRY_ASSIGN(scores, ScoreColumns(scorer, columns));
  }
  InferenceReply reply;
  reply.instances = scores.values.size() / scores.width;
  reply.body = instances != nullptr ? "{\"predictions\":[" : "{\"outputs\":[";
  for (size_t i = 0; i < reply.instances; ++i) {
    if (i > 0) reply.body += ',';
    AppendScore(scorer, scores, i, &reply.body);
  }
  reply.body += "]}\n";
  return reply;
}

void AppendNeighbours(const model::VectorIndex& index, const std::vector<model::Neighbour>& near,
                      std::string* to) {
  *to += "{\"neighbours\":[";
  for (size_t i = 0; i < near.size(); ++i) {
    fmt::format_to(std::back_inserter(*to), "{}{{\"word\":{},\"similarity\":{}}}",
                   i == 0 ? "" : ",", Quoted(index.word(near[i].row)), near[i].similarity);
  }
  *to += "]}";
}

Result<std::vector<std::string_view>> InstancesOf(const JsonMembers& members,
                                                  const InferenceLimits& limits) {
  const std::string_view* const instances = FindMember(members, "instances");
  if (instances == nullptr) return InvalidArgument("the body lacks instances, an array of words");
  return ElementsOf(*instances, limits.max_batch);
}

Result<InferenceReply> PredictNeighbours(const ServedVectors& vectors, const JsonMembers& members,
                                         const InferenceLimits& limits) {
  TRY_ASSIGN(const size_t top, CountOf(FindMember(members, "top"), limits.max_neighbours));
  TRY_ASSIGN(const auto instances, InstancesOf(members, limits));
  InferenceReply reply{"{\"predictions\":[", instances.size()};
  for (size_t i = 0; i < instances.size(); ++i) {
    if (i > 0) reply.body += ',';
    if (instances[i].front() == '[') {
      const auto query = VectorOf(vectors, instances[i]);
      if (!query.ok()) return OfInstance(i, query.status());
      AppendNeighbours(vectors.index, vectors.index.Nearest(*query, top, {}), &reply.body);
      continue;
    }
    const auto word = TextOfSlice(instances[i]);
    if (!word.ok()) return OfInstance(i, word.status());
    const auto near = NearestTo(vectors, *word, top);
    if (!near.ok()) return OfInstance(i, near.status());
    AppendNeighbours(vectors.index, *near, &reply.body);
  }
  reply.body += "]}\n";
  return reply;
}

}  // namespace

std::string Quoted(std::string_view text) { return ToText(json::string(EscapedUtf8(text))); }

Result<InferenceReply> PredictV1(const ServedModel& model, std::string_view body,
                                 const InferenceLimits& limits) {
  TRY_ASSIGN(const JsonMembers members, MembersOf(body));
  TRY(CheckMembers(members, model.vectors() != nullptr));
  if (model.vectors() != nullptr) return PredictNeighbours(*model.vectors(), members, limits);
  return PredictRows(*model.scorer(), members, limits);
}

Result<InferenceReply> VectorsV1(const ServedModel& model, std::string_view body,
                                 const InferenceLimits& limits) {
  const ServedVectors* const vectors = model.vectors();
  if (vectors == nullptr)
    return InvalidArgument(model.name() + " has no word vectors; ask :predict for predictions");
  TRY_ASSIGN(const JsonMembers members, MembersOf(body));
  TRY_ASSIGN(const auto instances, InstancesOf(members, limits));
  InferenceReply reply{"{\"vectors\":[", instances.size()};
  for (size_t i = 0; i < instances.size(); ++i) {
    const auto word = TextOfSlice(instances[i]);
    if (!word.ok()) return OfInstance(i, word.status());
    const auto row = RowOfWord(*vectors, *word);
    if (!row.ok()) return OfInstance(i, row.status());
    if (i > 0) reply.body += ',';
    AppendFloats(vectors->Row(*row), &reply.body);
  }
  reply.body += "]}\n";
  return reply;
}

}  // namespace shoal::serving
