#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "data/formats/record_reader.h"
#include "data/gate/gate_objects.h"
#include "data/gate/gate_proof.h"
#include "data/gate/gate_server.h"
#include "data/gate/table_filter.h"
#include "data/objects/http_transport.h"
#include "data/objects/object_stores.h"
#include "data/parquet/parquet_file.h"
#include "data/parquet/test_parquet.h"
#include "net/http/http_server.h"

namespace shoal::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCanary = "canary-4711@example.org";

class GateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "gate-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    fs::create_directory(dir_ / "data");
    fs::create_directory(dir_ / "scratch");
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string Write(const std::string& name, const std::string& text) {
    const fs::path path = dir_ / "data" / name;
    std::ofstream(path) << text;
    return path.string();
  }

  GateTable People(const std::string& source) {
    GateTable table;
    table.data = "train";
    table.table = "hr.people";
    table.sources = {source};
    table.locations = {(dir_ / "data").string() + "/"};
    table.format = RecordFormat::kCsv;
    table.filtered = true;
    table.columns = {{"label", ColumnType::kInteger},
                     {"email", ColumnType::kText},
                     {"age", ColumnType::kInteger},
                     {"city", ColumnType::kText}};
    table.given = {0, 2, 3};
    table.masks.resize(3);
    return table;
  }

  void Open(GateTable table, std::string refusal = "") {
    GateOptions options;
    options.plan.token = "secret";
    options.plan.hash_key = "key";
    options.plan.scratch = (dir_ / "scratch").string();
    options.plan.refusal = std::move(refusal);
    options.plan.port = port_;
    options.plan.tables = {std::move(table)};
    options.on_ready = [this](const GateSources& sources) { sources_ = sources; };
    auto gate = Gate::Start(std::move(options));
    ASSERT_TRUE(gate.ok()) << gate.status().message();
    gate_ = std::move(*gate);
    port_ = gate_->port();
  }

  ObjectContext Context(const std::string& token = "secret") {
    ObjectContext context;
    context.env = [this, token](const char* name) {
      return std::string(name) == kGateVariable ? "127.0.0.1:" + std::to_string(port_) + " " + token
                                                : std::string();
    };
    context.sleep = [](std::chrono::milliseconds) { std::this_thread::yield(); };
    return context;
  }

  Result<std::string> ReadAll(const std::string& token = "secret") {
    ObjectStores stores(Context(token));
    TRY_ASSIGN(const auto found, stores.List("gate://train/*"));
    std::string all;
    for (const ObjectInfo& one : found) {
      TRY_ASSIGN(const auto object, stores.Open(one.uri));
      std::string text(one.bytes, '\0');
      // In small pieces, as shards begin anywhere.
      for (size_t at = 0; at < text.size(); at += 7) {
        TRY(object->ReadAt(at, text.data() + at, std::min<size_t>(7, text.size() - at)).status());
      }
      all += text;
    }
    return all;
  }

  // The status of GET /train with these headers, but for Host.
  int Ask(const net::HttpHeaders& headers) {
    HttpTransport transport(Context(), "");
    TransportCall call;
    call.server = "http://127.0.0.1:" + std::to_string(port_);
    call.request = [&](WallTime) -> Result<net::HttpRequest> {
      net::HttpRequest request;
      request.target = "/train";
      for (const auto& header : headers)
        if (header.first != "host" && header.first != "content-length")
          request.headers.push_back(header);
      return request;
    };
    const auto reply = transport.Run(call);
    return reply.ok() ? reply->status : -1;
  }

  fs::path dir_;
  uint16_t port_ = 0;
  std::unique_ptr<Gate> gate_;
  GateSources sources_;
};

TEST_F(GateTest, GivesColumnsRowsAndMasks) {
  Write("1.csv", std::string("label,email,age,city\n1,") + kCanary + ",30,Paris\n0,b@x,17,Rome\n");
  Write("2.csv", "city,label,age,email,more\n\"Berlin, Mitte\",1,,c@x,zz\nOslo,0,44,d@x,zz\n");
  GateTable table = People((dir_ / "data/*.csv").string());
  table.rows = "age >= 18";
  table.masks[2] = {MaskKind::kTruncate, 2};
  Open(table);
  const auto text = ReadAll();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "label,age,city\n1,30,Pa\nlabel,age,city\n0,44,Os\n");
  EXPECT_EQ(text->find(kCanary), std::string::npos);
  EXPECT_EQ(sources_.records_read, 4);
  EXPECT_EQ(sources_.records_given, 2);
  EXPECT_EQ(sources_.objects.size(), 2);
}

TEST_F(GateTest, GivesTheCanaryWhereItIsGranted) {
  Write("1.csv", std::string("label,email,age,city\n1,") + kCanary + ",30,Paris\n");
  GateTable table = People((dir_ / "data/1.csv").string());
  table.given = {0, 1};
  table.masks.resize(2);
  Open(table);
  const auto text = ReadAll();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, std::string("label,email\n1,") + kCanary + "\n");
}

TEST_F(GateTest, FiltersJsonLines) {
  Write("1.jsonl",
        "{\"email\":\"a@x\",\"age\":30,\"label\":1,\"tags\":[1,2]}\n{\"age\":5,\"label\":0}\n{"
        "\"label\":1}\n");
  GateTable table = People((dir_ / "data/1.jsonl").string());
  table.format = RecordFormat::kJsonLines;
  table.given = {0, 1, 2};
  table.masks = {{}, {MaskKind::kHash, 0}, {}};
  table.rows = "age > 10 or age is null";
  Open(table);
  const auto text = ReadAll();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "{\"label\":1,\"email\":\"" + MaskText({MaskKind::kHash, 0}, "key", "a@x") +
                       "\",\"age\":30}\n{\"label\":1}\n");
}

// A table over the rows of test_parquet.h.
class ParquetGateTest : public GateTest {
 protected:
  GateTable Letters(const std::string& source) {
    GateTable table = People(source);
    table.format = RecordFormat::kParquet;
    table.columns = {{"a", ColumnType::kFloat}, {"b", ColumnType::kInteger},
                     {"c", ColumnType::kText},  {"l", ColumnType::kNested},
                     {"f", ColumnType::kBool},  {"s.n", ColumnType::kInteger}};
    table.given = {0, 3, 4, 5};
    table.masks.assign(4, {});
    return table;
  }
  // Overwrites the chunks of a column, of all row groups or of one.
  static void Damage(const std::string& path, size_t column, size_t only = SIZE_MAX) {
    const auto corpus = Corpus::Open({path}, ObjectContext(), Content::kBytes);
    ASSERT_TRUE(corpus.ok());
    const auto bytes = ByteRanges::Open(corpus->files()[0]);
    ASSERT_TRUE(bytes.ok());
    const auto footer = ReadParquetFooter(corpus->files()[0], bytes->get());
    ASSERT_TRUE(footer.ok());
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (size_t i = 0; i < footer->groups.size(); ++i) {
      if (only != SIZE_MAX && only != i) continue;
      const ParquetChunk& chunk = footer->groups[i].chunks[column];
      file.seekp(static_cast<std::streamoff>(chunk.begin));
      file << std::string(chunk.bytes, '\xff');
    }
  }
};

TEST_F(ParquetGateTest, GivesColumnsRowsAndMasksAsJsonLines) {
  for (const std::string_view hex : {kParquetVersion1, kParquetVersion2}) {
    GateTable table = Letters(Write("1.parquet", BytesOfHex(hex)));
    table.rows = "b >= -3 and f is not null";
    table.masks[1] = {MaskKind::kHash, 0};
    Open(table);
    EXPECT_EQ(ReadAll().value_or("?"),
              "{\"a\":1.5,\"l\":\"" + MaskText({MaskKind::kHash, 0}, "key", R"(["p","q"])") +
                  "\",\"f\":true,\"s.n\":1}\n{\"a\":null,\"l\":\"" +
                  MaskText({MaskKind::kHash, 0}, "key", "[]") + "\",\"f\":false,\"s.n\":null}\n");
    EXPECT_EQ(sources_.records_read, 3);
    EXPECT_EQ(sources_.records_given, 2);
    port_ = 0;
  }
}

TEST_F(ParquetGateTest, BooleansAndTextsAreCompared) {
  GateTable table = Letters(Write("1.parquet", BytesOfHex(kParquetVersion1)));
  table.given = {1};
  table.masks.assign(1, {});
  table.rows = "f = true or (f is null and c = 'x')";
  Open(table);
  EXPECT_EQ(ReadAll().value_or("?"), "{\"b\":1}\n{\"b\":-3}\n");
}

TEST_F(ParquetGateTest, MasksHideTextsNumbersAndLists) {
  GateTable table = Letters(Write("1.parquet", BytesOfHex(kParquetVersion1)));
  table.given = {1, 2, 3};
  table.masks = {{MaskKind::kRedact, 0}, {MaskKind::kTruncate, 0}, {MaskKind::kNull, 0}};
  Open(table);
  EXPECT_EQ(ReadAll().value_or("?"),
            "{\"b\":\"n\",\"c\":\"\",\"l\":null}\n{\"b\":\"n\",\"c\":\"\",\"l\":null}\n"
            "{\"b\":\"-n\",\"c\":\"\",\"l\":null}\n");
}

// What is not given is not even read: its bytes may be damaged.
TEST_F(ParquetGateTest, ReadsOnlyTheChunksOfTheColumnsItNeeds) {
  const std::string path = Write("1.parquet", BytesOfHex(kParquetVersion1));
  GateTable table = Letters(path);
  table.rows = "b < 0";
  Damage(path, 2);
  Open(table);
  EXPECT_EQ(ReadAll().value_or("?"), "{\"a\":3,\"l\":[],\"f\":null,\"s.n\":3}\n");
  gate_.reset();
  table.rows = "b < 0 and c = 'x'";
  Open(table);
  const auto refused = ReadAll();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("column c"), std::string::npos);
}

// A row group in which the condition can hold for no row is not read: its bytes may be damaged.
TEST_F(ParquetGateTest, PassesOverRowGroupsByTheirBounds) {
  const std::string path = Write("1.parquet", BytesOfHex(kParquetBounds));
  GateTable table = Letters(path);
  table.columns = {
      {"b", ColumnType::kInteger}, {"c", ColumnType::kText}, {"r", ColumnType::kFloat}};
  table.given = {0};
  table.masks.assign(1, {});
  Damage(path, 0, 0);
  for (const char* const rows :
       {"b < 1", "b in (-3, 0)", "not (b >= 1)", "b = -3 or b = 7", "c < 'n' and b < 5", "r > 1"}) {
    table.rows = rows;
    Open(table);
    EXPECT_EQ(ReadAll().value_or("?"), "{\"b\":-3}\n") << rows;
    EXPECT_EQ(sources_.records_read, 3);
    gate_.reset();
  }
  for (const char* const rows : {"b < 2", "b < 2 or c is null"}) {
    table.rows = rows;
    Open(table);
    EXPECT_FALSE(ReadAll().ok()) << rows;
    gate_.reset();
  }
}

TEST_F(ParquetGateTest, FilesMustHaveTheColumns) {
  GateTable table = Letters(Write("1.parquet", BytesOfHex(kParquetVersion1)));
  table.columns[0].name = "z";
  Open(table);
  const auto refused = ReadAll();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("got no column z, which hr.people has"),
            std::string::npos);
}

TEST_F(ParquetGateTest, AWholeTableIsGivenAsItIs) {
  const std::string bytes = BytesOfHex(kParquetVersion2);
  GateTable table = Letters(Write("1.parquet", bytes));
  table.filtered = false;
  Open(table);
  EXPECT_EQ(ReadAll().value_or("?"), bytes);
}

TEST_F(GateTest, GivesSourcesAsTheyAreWhereNothingIsHidden) {
  const std::string text = "1 1:0.5 2:3\n-1 7:1\n";
  GateTable table = People(Write("a.svm", text));
  table.format = RecordFormat::kLibsvm;
  table.filtered = false;
  table.columns.clear();
  table.given.clear();
  table.masks.clear();
  Open(table);
  EXPECT_EQ(ReadAll().value_or("?"), text);
}

TEST_F(GateTest, WantsTheTokenOfItsJob) {
  Open(People(Write("1.csv", "label,email,age,city\n1,a,2,b\n")));
  const auto refused = ReadAll("other");
  EXPECT_EQ(refused.status().code(), Code::kUnauthenticated);
  EXPECT_NE(refused.status().message().find("does not have the job's token"), std::string::npos);
  for (const net::HttpHeaders& headers :
       {net::HttpHeaders{}, net::HttpHeaders{{"Authorization", "Bearer secret"}},
        net::HttpHeaders{{"Authorization", "Shoal  "}, {"Shoal-Nonce", "1"}}})
    EXPECT_EQ(Ask(headers), 401);
}

// Another process that has the gate's port learns nothing that opens the gate, and is not believed.
TEST_F(GateTest, WhoTakesItsPortLearnsNothing) {
  const GateTable table = People(Write("1.csv", "label,email,age,city\n1,a,2,b\n"));
  Open(table);
  ASSERT_TRUE(ReadAll().ok());
  const std::string good = ReadAll().value();
  gate_.reset();
  std::mutex mu;
  std::vector<net::HttpHeaders> heard;
  net::HttpServerOptions options;
  options.port = port_;
  options.handler = [&](const std::shared_ptr<net::HttpExchange>& exchange) {
    {
      const std::lock_guard lock(mu);
      heard.push_back(exchange->request().headers);
    }
    exchange->Reply({200,
                     {{"Shoal-Gate", "mine"}, {"Shoal-Proof", "mine"}},
                     R"({"state":"ready","objects":[{"name":"1.csv","bytes":3,"version":"v"}]})"});
  };
  auto impostor = net::HttpServer::Start(std::move(options));
  ASSERT_TRUE(impostor.ok()) << impostor.status().message();
  EXPECT_EQ(ReadAll().status().code(), Code::kUnauthenticated);
  impostor->reset();
  ASSERT_FALSE(heard.empty());
  Open(table);
  for (const net::HttpHeaders& headers : heard) {
    for (const auto& [name, value] : headers)
      EXPECT_EQ(value.find("secret"), std::string::npos) << name;
    EXPECT_EQ(Ask(headers), 401);
  }
  EXPECT_EQ(ReadAll().value_or("?"), good);
}

// What a program has asked one start of the gate is no question of another start.
TEST_F(GateTest, QuestionsAreOfOneStart) {
  const GateQuestion question{"a", "n", "/train", "bytes=0-1", "v"};
  GateQuestion other = question;
  other.instance = "b";
  EXPECT_NE(QuestionProof("secret", question), QuestionProof("secret", other));
  EXPECT_NE(QuestionProof("secret", question), QuestionProof("other", question));
  other = question;
  other.range = "bytes=0-2";
  EXPECT_NE(QuestionProof("secret", question), QuestionProof("secret", other));
}

TEST_F(GateTest, ARefusalIsTheAnswer) {
  Open(People(Write("1.csv", "label,email,age,city\n1,a,2,b\n")), "the grant has expired");
  EXPECT_EQ(ReadAll().status().code(), Code::kPermissionDenied);
  EXPECT_EQ(ReadAll().status().message(), "gate://train: the grant has expired");
}

TEST_F(GateTest, AGateThatWasStartedAgainGoesOn) {
  GateTable table = People(Write("1.csv", "label,email,age,city\n1,a,20,b\n0,c,30,d\n"));
  Open(table);
  ObjectStores stores(Context());
  const auto object = stores.Open("gate://train/000000.csv");
  ASSERT_TRUE(object.ok()) << object.status().message();
  std::string text((*object)->info().bytes, '\0');
  ASSERT_TRUE((*object)->ReadAt(0, text.data(), 10).ok());
  gate_.reset();
  Open(table);
  ASSERT_TRUE((*object)->ReadAt(10, text.data() + 10, text.size() - 10).ok());
  EXPECT_EQ(text, "label,age,city\n1,20,b\n0,30,d\n");
  gate_.reset();
  table.rows = "age > 20";
  Open(table);
  const auto changed = (*object)->ReadAt(0, text.data(), 10);
  EXPECT_EQ(changed.status().code(), Code::kDataLoss);
}

TEST_F(GateTest, AChangedSourceIsAnError) {
  GateTable table = People(Write("1.csv", "label,email,age,city\n1,a,20,b\n0,c,30,d\n"));
  Open(table);
  ObjectStores stores(Context());
  const auto object = stores.Open("gate://train/000000.csv");
  ASSERT_TRUE(object.ok());
  gate_.reset();
  Write("1.csv", "label,email,age,city\n1,a,21,b\n0,c,31,d\n1,x,1,y\n");
  Open(table);
  char byte = 0;
  EXPECT_EQ((*object)->ReadAt(0, &byte, 1).status().code(), Code::kDataLoss);
}

TEST_F(GateTest, LinksOutOfTheLocationsAreRefused) {
  std::ofstream(dir_ / "outside.csv") << "label,email,age,city\n1,a,2,b\n";
  fs::create_symlink(dir_ / "outside.csv", dir_ / "data" / "link.csv");
  Open(People((dir_ / "data/link.csv").string()));
  const auto refused = ReadAll();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("leads out of the locations"), std::string::npos);
}

TEST_F(GateTest, FilesMustHaveTheColumnsOfTheTable) {
  Open(People(Write("1.csv", "label,email,city\n1,a,b\n")));
  const auto refused = ReadAll();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("got no column age, which hr.people has"),
            std::string::npos);
}

TEST_F(GateTest, NothingOfTheFilteredRecordsHasAName) {
  Open(People(Write("1.csv", "label,email,age,city\n1,a,2,b\n")));
  ASSERT_TRUE(ReadAll().ok());
  EXPECT_TRUE(fs::is_empty(dir_ / "scratch"));
}

TEST_F(GateTest, PlansRoundTrip) {
  GatePlan plan;
  plan.port = 7;
  plan.token = "t";
  plan.tables = {People("/x.csv")};
  plan.tables[0].environment = {{"AWS_ACCESS_KEY_ID", "id"}};
  plan.tables[0].masks[1] = {MaskKind::kHash, 0};
  const auto again = GatePlanFromJson(ToJson(plan));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, plan);
}

}  // namespace
}  // namespace shoal::data
