#include "api/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "api/catalog/lineage.h"
#include "api/catalog/table_access.h"
#include "base/file.h"
#include "controller/store/sql/test_temp_store.h"

namespace shoal::api {
namespace {

using testing::HasSubstr;

class CatalogTest : public controller::TempStoreTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(TempStoreTest::SetUp());
    catalog_ = std::make_unique<Catalog>(&store_->records(), &clock_);
    ASSERT_TRUE(catalog_->SetDatabase(Ads()).ok());
  }

  static Database Ads() { return {"ads", "team", {"s3://bucket/ads/", "/data/ads/"}, {}}; }
  static data::Table Clicks(const std::string& source = "s3://bucket/ads/part-*.csv") {
    data::Table table;
    table.database = "ads";
    table.name = "clicks";
    table.owner = "kim";
    table.sources = {source};
    table.format = data::RecordFormat::kCsv;
    table.columns = {{"age", data::ColumnType::kInteger}};
    return table;
  }

  FakeClock clock_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogTest, SourcesLieInLocations) {
  for (const char* const wrong :
       {"s3://bucket/other/x", "s3://bucket-2/ads/x", "/data/ads/../secret.csv", "/data/adsx",
        "https://bucket/ads/x", "/data/ads/"})
    EXPECT_EQ(catalog_->CreateTable(Clicks(wrong)).code(), Code::kInvalidArgument) << wrong;
  EXPECT_TRUE(catalog_->CreateTable(Clicks("file:///data/ads/x.csv")).ok());
  EXPECT_EQ(catalog_->CreateTable(Clicks()).code(), Code::kAlreadyExists);
  EXPECT_THAT(catalog_->RemoveDatabase("ads").message(), HasSubstr("has 1 tables"));
  EXPECT_TRUE(catalog_->RemoveTable("ads.clicks").ok());
  EXPECT_TRUE(catalog_->RemoveDatabase("ads").ok());
}

TEST_F(CatalogTest, LocationsAreWholePlaces) {
  for (const char* const wrong : {"s3://bucket", "/data", "data/", "s3://bucket/x", "/data/../",
                                  "file:///data/", "gs://x/y/"}) {
    Database database = Ads();
    database.locations = {wrong};
    EXPECT_EQ(catalog_->SetDatabase(database).code(), Code::kInvalidArgument) << wrong;
  }
}

TEST_F(CatalogTest, TagsStayWhenADatabaseChanges) {
  ASSERT_TRUE(catalog_->SetTagPolicy("ads", {.tag = "pii"}).ok());
  Database changed = Ads();
  changed.team = "other";
  ASSERT_TRUE(catalog_->SetDatabase(changed).ok());
  const auto database = catalog_->GetDatabase("ads");
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(database->team, "other");
  EXPECT_EQ(database->tags.size(), 1);
  EXPECT_TRUE(catalog_->RemoveTagPolicy("ads", "pii").ok());
  EXPECT_EQ(catalog_->RemoveTagPolicy("ads", "pii").code(), Code::kNotFound);
}

TEST_F(CatalogTest, ChangesAtTheSameTimeAreAllMade) {
  ASSERT_TRUE(catalog_->CreateTable(Clicks()).ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto changed = catalog_->ChangeTable("ads.clicks", [i](data::Table* table) -> Status {
        data::Grant grant;
        grant.id = std::to_string(i);
        grant.principal = "everyone";
        table->grants.push_back(grant);
        return Status::Ok();
      });
      EXPECT_TRUE(changed.ok()) << changed.status().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(catalog_->GetTable("ads.clicks")->grants.size(), 4);
  const auto refused = catalog_->ChangeTable("ads.clicks", [](data::Table* table) -> Status {
    table->grants[0].rows = "nothing = 1";
    return Status::Ok();
  });
  EXPECT_THAT(refused.status().message(), HasSubstr("rows: column 1: got nothing"));
}

TEST_F(CatalogTest, TablesOfJobsAreResolved) {
  data::Table table = Clicks();
  table.grants.push_back({.id = "1", .principal = "user:ada"});
  ASSERT_TRUE(catalog_->CreateTable(table).ok());
  job::Job job;
  job.framework = job::Framework::kShoal;
  job.data = {{.name = "train",
               .sources = {},
               .table = "ads.clicks",
               .columns = {},
               .format = "text",
               .shard_by = {}}};
  const auto direct = ResolveTables(catalog_.get(), {"ada", {}}, job, nullptr, clock_.Wall());
  ASSERT_TRUE(direct.ok()) << direct.status().message();
  EXPECT_FALSE(direct->at(0).gated);
  job::Job changed = job;
  SetSources(*direct, &changed);
  EXPECT_EQ(changed.data[0].sources, table.sources);
  EXPECT_EQ(changed.data[0].format, "csv");
  const auto refused = ResolveTables(catalog_.get(), {"bob", {}}, job, nullptr, clock_.Wall());
  EXPECT_EQ(refused.status().code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.status().message(), HasSubstr("data.train.table: table ads.clicks for bob"));
  ASSERT_TRUE(catalog_
                  ->ChangeTable("ads.clicks",
                                [](data::Table* t) {
                                  t->credentials = "s3";
                                  return Status::Ok();
                                })
                  .ok());
  const auto gated = ResolveTables(catalog_.get(), {"ada", {}}, job, nullptr, clock_.Wall());
  ASSERT_TRUE(gated.ok());
  EXPECT_TRUE(gated->at(0).gated);
  SetSources(*gated, &changed);
  EXPECT_EQ(changed.data[0].sources, std::vector<std::string>{"gate://train/*"});
}

TEST_F(CatalogTest, LineageIsKept) {
  Lineage lineage(&store_->records(), &clock_);
  LineageRecord record;
  record.job = "clicks-1";
  record.outputs = {{"model", "/models/x"}};
  record.tables = {{.data = "train",
                    .table = "ads.clicks",
                    .columns = {"age"},
                    .rows = "age > 1",
                    .masks = {{"age", "hash"}},
                    .gated = true,
                    .objects = {}}};
  ASSERT_TRUE(lineage.Put(record).ok());
  ASSERT_TRUE(lineage.NoteObjects("clicks-1", "train", {{"s3://b/x", 7, "etag", ""}}).ok());
  const auto found = lineage.Get("clicks-1");
  ASSERT_TRUE(found.ok());
  record.tables[0].objects = {{"s3://b/x", 7, "etag", ""}};
  record.tables[0].object_count = 1;
  EXPECT_EQ(ToJson(*found), ToJson(record));
  EXPECT_EQ(lineage.Get("other").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace shoal::api
