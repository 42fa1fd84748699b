#include "serving/inference/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "learn/sparse/predict.h"
#include "serving/inference/json_slices.h"
#include "serving/inference/test_models.h"

namespace shoal::serving {
namespace {

using testing::HasSubstr;

class Inference : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (directory_.path() / name).string(); }

  // What `shoal predict` prints of the rows, which are lines of a file of that name.
  std::vector<std::string> Predicted(const std::string& model, const std::string& name,
                                     const std::string& lines) const {
    std::ofstream(Path(name)) << lines;
    const auto read = model::ReadFactorModel(model);
    const auto metadata = model::ReadModelMetadata(model);
    const auto predictions = learn::sparse::Predict(*read, *metadata, {Path(name)}, {});
    EXPECT_TRUE(predictions.ok()) << predictions.status().message();
    std::vector<std::string> texts;
    const size_t classes = std::max<size_t>(1, read->linear.classes());
    for (size_t i = 0; predictions.ok() && i < predictions->examples; ++i) {
      std::string text;
      for (size_t c = 0; c < classes; ++c) {
        text += c > 0 ? "," : "";
        text += predictions->values.empty()
                    ? fmt::format("{:.6g}", predictions->probabilities[i * classes + c])
                    : fmt::format("{:.9g}", predictions->values[i]);
      }
      texts.push_back(classes > 1 ? "[" + text + "]" : text);
    }
    return texts;
  }

  // The answers of the rows as slices.
  static std::vector<std::string> Answers(const ServedModel& model,
                                          const std::vector<std::string>& rows) {
    const std::string body = fmt::format("{{\"instances\": [{}]}}", fmt::join(rows, ", "));
    const auto reply = PredictV1(model, body, {});
    EXPECT_TRUE(reply.ok()) << reply.status().message();
    if (!reply.ok()) return {};
    const auto members = MembersOf(reply->body);
    const auto elements = ElementsOf(*FindMember(*members, "predictions"), 1 << 20);
    return {elements->begin(), elements->end()};
  }

  static std::string Refused(const ServedModel& model, const std::string& body) {
    const auto reply = PredictV1(model, body, {});
    EXPECT_FALSE(reply.ok()) << reply->body;
    return reply.ok() ? "" : reply.status().message();
  }

  const TempDir directory_ = TempDir::Create().value();
};

// Numbers with digits that a float cannot hold, texts with escapes, missing cells, booleans.
std::vector<std::string> Rows(int count) {
  std::mt19937_64 random(3);
  std::vector<std::string> rows;
  for (int i = 0; i < count; ++i) {
    std::string row = fmt::format("{{\"id\": \"k{}\"", i);
    if (random() % 5 != 0)
      row += fmt::format(", \"age\": {}.{:07}", random() % 90, random() % 10'000'000);
    if (random() % 3 != 0) row += fmt::format(", \"zip\": {}", 1000 + random() % 50);
    if (random() % 7 == 0) row += ", \"zip\": \"10.0\"";
    if (random() % 4 != 0) row += fmt::format(", \"town\": \"to\\u00fcn \\\"{}\"", random() % 9);
    if (random() % 9 == 0) row += ", \"town\": true";
    rows.push_back(row + "}");
  }
  // Two fields of one name are read as the last one, as in files of JSON lines.
  return rows;
}

TEST_F(Inference, AnswersOfATableAreThoseOfPredictToTheDigit) {
  for (const char* const loss :
       {"logistic", "squared", "hinge", "poisson", "softmax", "quantile"}) {
    for (const auto& [factors, fields] : {std::pair{0u, 0u}, {4u, 0u}, {2u, 3u}}) {
      const std::string path = Path(fmt::format("{}-{}-{}", loss, factors, fields));
      SaveTableModel(path, loss, factors, fields);
      const auto model = LoadedModel(path);
      const std::vector<std::string> rows = Rows(300);
      EXPECT_EQ(Answers(*model, rows),
                Predicted(path, "rows.jsonl", fmt::format("{}\n", fmt::join(rows, "\n"))))
          << path;
    }
  }
}

TEST_F(Inference, AnswersOfSparseExamplesAreThoseOfPredictToTheDigit) {
  std::mt19937_64 random(5);
  for (const std::string& format : std::vector<std::string>{"libsvm", "libffm"}) {
    const bool ffm = format == "libffm";
    const std::string path = Path(format);
    ASSERT_TRUE(model::SaveFactorModel(path, TestModel(0, 50, 1, ffm ? 3 : 0, ffm ? 4 : 0),
                                       TestMetadata("logistic", format), false)
                    .ok());
    const auto model = LoadedModel(path);
    std::vector<std::string> rows;
    std::string lines;
    for (int i = 0; i < 200; ++i) {
      std::string pairs;
      for (uint64_t f = random() % 9; f < 80; f += 1 + random() % 30)  // also unknown features
        pairs += fmt::format(" {}{}:{}.{:05}", ffm ? fmt::format("{}:", f % 6) : "", f,
                             random() % 3, random() % 100'000);
      rows.push_back(fmt::format("\"{}{}\"", i % 2 == 0 ? "1" : "", pairs));
      lines += "1" + pairs + "\n";
    }
    EXPECT_EQ(Answers(*model, rows), Predicted(path, "rows." + format, lines));
  }
}

TEST_F(Inference, ColumnsGiveWhatRowsGive) {
  SaveTableModel(Path("m"), "logistic");
  const auto model = LoadedModel(Path("m"));
  const auto rows = Answers(
      *model, {R"({"age": 31.5, "zip": 1010, "town": "Rome"})", R"({"age": null, "zip": 7})"});
  const auto columns = PredictV1(
      *model, R"({"inputs": {"age": [31.5, null], "zip": [1010, 7], "town": ["Rome", null]}})", {});
  ASSERT_TRUE(columns.ok()) << columns.status().message();
  EXPECT_EQ(columns->body, fmt::format("{{\"outputs\":[{}]}}\n", fmt::join(rows, ",")));
  EXPECT_EQ(columns->instances, 2u);
  const auto v2 = InferV2(*model, R"({"id": "7", "inputs": [
        {"name": "age", "shape": [2], "datatype": "FP64", "data": [31.5, null]},
        {"name": "zip", "shape": [2, 1], "datatype": "INT64", "data": [1010, 7]},
        {"name": "town", "shape": [2], "datatype": "BYTES", "data": ["Rome", null]}],
        "outputs": [{"name": "probability"}, {"name": "class"}]})",
                          {});
  ASSERT_TRUE(v2.ok()) << v2.status().message();
  EXPECT_THAT(v2->body, HasSubstr(R"("model_name":"m","model_version":"1","id":"7")"));
  EXPECT_THAT(v2->body, HasSubstr(fmt::format(
                            R"("name":"probability","datatype":"FP64","shape":[2],"data":[{}])",
                            fmt::join(rows, ","))));
  EXPECT_THAT(v2->body, HasSubstr(R"({"name":"class","datatype":"BYTES","shape":[2],"data":[)"));
}

TEST_F(Inference, BadRequestsAreNamed) {
  SaveTableModel(Path("m"), "squared");
  const auto model = LoadedModel(Path("m"));
  EXPECT_THAT(Refused(*model, "{"), HasSubstr("at byte"));
  EXPECT_THAT(Refused(*model, "[]"), HasSubstr("an object begins with {"));
  EXPECT_THAT(Refused(*model, "{}"), HasSubstr("neither instances and inputs"));
  EXPECT_THAT(Refused(*model, R"({"instances": [], "instances": []})"), HasSubstr("two fields"));
  EXPECT_THAT(Refused(*model, R"({"instances": [{"age": NaN}]})"), HasSubstr("instance 0"));
  EXPECT_THAT(Refused(*model, R"({"instances": [{}, {"age": Infinity}]})"),
              HasSubstr("instance 1"));
  EXPECT_THAT(Refused(*model, R"({"instances": [{"agee": 3}]})"),
              HasSubstr("no column 'agee'; did you mean 'age'?"));
  EXPECT_THAT(Refused(*model, R"({"instances": ["3:1"]})"), HasSubstr("an object with a field"));
  EXPECT_THAT(Refused(*model, R"({"instances": [17]})"), HasSubstr("an instance is an object"));
  EXPECT_THAT(Refused(*model, R"({"inputs": {"age": [1, 2], "zip": [3]}})"),
              HasSubstr("'zip' has 1 values"));
  EXPECT_THAT(Refused(*model, R"({"instances": [], "junk": 1})"),
              HasSubstr("unknown field \"junk\""));
  const auto large = PredictV1(*model, R"({"instances": [{}, {}, {}]})", {.max_batch = 2});
  EXPECT_EQ(large.status().code(), Code::kResourceExhausted);
  const auto infinite = PredictV1(*model, R"({"inputs": {"age": [1e999]}})", {});
  ASSERT_TRUE(infinite.ok()) << infinite.status().message();  // missing, as in training
  const auto missing = PredictV1(*model, R"({"inputs": {"age": [null]}})", {});
  EXPECT_EQ(infinite->body, missing->body);
}

TEST_F(Inference, BadTensorsAreNamed) {
  SaveTableModel(Path("m"), "logistic");
  const auto model = LoadedModel(Path("m"));
  const auto refused = [&](const std::string& tensor) {
    const auto reply = InferV2(*model, "{\"inputs\": [" + tensor + "]}", {});
    EXPECT_FALSE(reply.ok()) << reply->body;
    return reply.ok() ? "" : reply.status().message();
  };
  EXPECT_THAT(refused(R"({"name": "age"})"), HasSubstr("lacks datatype"));
  EXPECT_THAT(refused(R"({"name": "age", "datatype": "FP7", "shape": [1], "data": [1]})"),
              HasSubstr("got FP7"));
  EXPECT_THAT(refused(R"({"name": "age", "datatype": "FP64", "shape": [2], "data": [1]})"),
              HasSubstr("has 1 elements, expected 2"));
  EXPECT_THAT(refused(R"({"name": "age", "datatype": "FP64", "shape": [1], "data": ["x"]})"),
              HasSubstr("expected FP64"));
  EXPECT_THAT(
      refused(
          R"({"name": "age", "datatype": "FP64", "shape": [4294967295,4294967295], "data": [1]})"),
      HasSubstr("expected"));
  EXPECT_THAT(refused(R"({"name": "age", "datatype": "FP64", "shape": [1,2], "data": [1,2]})"),
              HasSubstr("expected [N] or [N,1]"));
  EXPECT_THAT(refused(R"({"name": "age", "datatype": "FP64", "shape": [1]})"),
              HasSubstr("binary extension"));
}

TEST_F(Inference, PredictionsThatAreNoNumbersAreRefused) {
  ASSERT_TRUE(model::SaveFactorModel(Path("m"), TestModel(0, 10, 1, 2, 0),
                                     TestMetadata("logistic", "libsvm"), false)
                  .ok());
  const auto model = LoadedModel(Path("m"));
  EXPECT_THAT(Refused(*model, R"({"instances": ["1:1", "1:3e38 2:3e38 3:-3e38"]})"),
              HasSubstr("instance 1: its values are so large"));
  EXPECT_THAT(Refused(*model, R"({"instances": ["1:inf"]})"), HasSubstr("finite"));
  EXPECT_THAT(Refused(*model, R"({"instances": ["1:1\n2:1"]})"), HasSubstr("several lines"));
  EXPECT_THAT(Refused(*model, R"({"instances": [{"a": 1}]})"), HasSubstr("no columns"));
}

TEST_F(Inference, WordsHaveNeighboursAndVectors) {
  model::Vectors vectors;
  vectors.words = {"king", "queen", "bread"};
  vectors.dim = 2;
  vectors.values = {3, 0, 2, 0.5f, 0, 1};
  ASSERT_TRUE(model::SaveModel(Path("w"), {.vectors = model::RowsOf(vectors),
                                           .count = [](uint64_t) { return uint64_t{1}; },
                                           .metadata = {}})
                  .ok());
  const auto model = LoadedModel(Path("w"), "w", 4);
  const auto near = PredictV1(*model, R"({"instances": ["king", [0, 2]], "top": 1})", {});
  ASSERT_TRUE(near.ok()) << near.status().message();
  EXPECT_THAT(near->body, HasSubstr(R"([{"neighbours":[{"word":"queen","similarity":0.970)"));
  EXPECT_THAT(near->body, HasSubstr(R"({"neighbours":[{"word":"bread","similarity":1}]})"));
  const auto rows = VectorsV1(*model, R"({"instances": ["queen"]})", {});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows->body, "{\"vectors\":[[2,0.5]]}\n");
  const auto unknown = PredictV1(*model, R"({"instances": ["qeen"]})", {});
  EXPECT_EQ(unknown.status().code(), Code::kNotFound);
  EXPECT_THAT(unknown.status().message(), HasSubstr("the nearest is 'queen'"));
  EXPECT_THAT(Refused(*model, R"({"instances": [[1, 2, 3]]})"), HasSubstr("expected 2"));
  EXPECT_THAT(Refused(*model, R"({"instances": [[1, 1e39]]})"), HasSubstr("finite number"));
  EXPECT_THAT(Refused(*model, R"({"instances": ["king"], "top": 0})"), HasSubstr("top: got 0"));
  const auto v2 =
      InferV2(*model, R"({"inputs": [{"name": "words", "shape": [1], "datatype": "BYTES",
      "data": ["king"]}], "parameters": {"top": 2}})",
              {});
  ASSERT_TRUE(v2.ok()) << v2.status().message();
  EXPECT_THAT(
      v2->body,
      HasSubstr(R"("neighbours","datatype":"BYTES","shape":[1,2],"data":["queen","bread"])"));
}

TEST_F(Inference, DamagedModelsAreRefused) {
  SaveTableModel(Path("m"), "logistic", 2);
  const auto load = [&] { return ServedModel::Load(Path("m"), "m", 1).status(); };
  ASSERT_TRUE(load().ok());
  const std::string whole = ReadFile(Path("m") + "/factors.bin", 1 << 24).value();
  for (const size_t bytes : {size_t{0}, size_t{7}, whole.size() / 2, whole.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(Path("m") + "/factors.bin", whole.substr(0, bytes)).ok());
    EXPECT_EQ(load().code(), Code::kDataLoss) << bytes;
  }
  // Factors of a model of another dimension.
  ASSERT_TRUE(WriteFileAtomically(Path("m") + "/factors.bin",
                                  model::EncodeFactors(TestModel(4, 0, 1, 5, 0)))
                  .ok());
  EXPECT_EQ(load().code(), Code::kDataLoss);
  ASSERT_TRUE(WriteFileAtomically(Path("m") + "/model.json", "{").ok());
  EXPECT_EQ(load().code(), Code::kDataLoss);
}

TEST(JsonSlices, FindsMembersAndElements) {
  const auto members = MembersOf(R"( { "a" : [1, {"b": "]}"}] , "c\u0064": "x,\"y" } )");
  ASSERT_TRUE(members.ok()) << members.status().message();
  EXPECT_EQ(*FindMember(*members, "a"), R"([1, {"b": "]}"}])");
  EXPECT_EQ(*FindMember(*members, "cd"), R"("x,\"y")");
  EXPECT_EQ(FindMember(*members, "b"), nullptr);
  const auto elements = ElementsOf("[ 1.50 , [2,3], null ]", 3);
  ASSERT_TRUE(elements.ok());
  EXPECT_THAT(*elements, testing::ElementsAre("1.50", "[2,3]", "null"));
  EXPECT_EQ(ElementsOf("[1,2,3]", 2).status().code(), Code::kResourceExhausted);
  for (const char* const bad : {"", "[", "[1,]", "[1 2", "[\"a]", "[[]", "[1]]", "[,1]", "{}"})
    EXPECT_FALSE(ElementsOf(bad, 9).ok()) << bad;
  std::string room;
  for (const char* const bad : {"01", "1.", "+1", "nul", "'a'", "\"\\x\"", "1e", "-", "\"a\nb\""})
    EXPECT_FALSE(CellOf(bad, &room).ok()) << bad;
  EXPECT_EQ(CellOf("-1.5e-3", &room)->text, "-1.5e-3");
  EXPECT_EQ(CellOf("\"\\u00e9\"", &room)->text, "é");
}

}  // namespace
}  // namespace shoal::serving
