// What servers say of themselves: whole over every number of lanes, and bounded when it is read.
#include "ps/wire/server_report.h"

#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

ServerReport Sample() {
  ServerReport report;
  TableSpec spec = SparseSpec("sparse", 3);
  spec.optimizer.kind = OptimizerKind::kFunction;
  spec.optimizer.function = "f";
  report.tables.push_back({DenseSpec("dense", 10, 4), 10, 640, 7, 8});
  report.tables.push_back({spec, 2, 100, 1, 0});
  report.hot_keys = {{"dense", 3, 640, 0.5}, {"sparse", 1ull << 63, 64, 0.05}};
  report.hot_samples = 1280;
  report.counters.rows_pushed = 8;
  report.counters.requests = 3;
  return report;
}

TEST(ReportTest, ComesBackAsItWent) {
  const ServerReport report = Sample();
  std::string bytes;
  EncodeReport(report, &bytes);
  ServerReport got;
  ASSERT_OK(DecodeReport(bytes, &got));
  ASSERT_EQ(got.tables.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got.tables[i].spec, report.tables[i].spec);
    EXPECT_EQ(got.tables[i].bytes, report.tables[i].bytes);
    EXPECT_EQ(got.tables[i].rows_pushed, report.tables[i].rows_pushed);
  }
  ASSERT_EQ(got.hot_keys.size(), 2u);
  EXPECT_EQ(got.hot_keys[1].key, 1ull << 63);
  EXPECT_DOUBLE_EQ(got.hot_keys[0].share, 0.5);
  EXPECT_EQ(got.counters.requests, 3u);
}

TEST(ReportTest, WhatIsCutOrTooMuchIsRefused) {
  std::string bytes;
  EncodeReport(Sample(), &bytes);
  ServerReport got;
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeReport(std::string_view(bytes).substr(0, size), &got).ok()) << size;
  EXPECT_FALSE(DecodeReport(bytes + "x", &got).ok());
  const std::string many("\xff\xff\xff\xff", 4);
  EXPECT_EQ(DecodeReport(many, &got).code(), Code::kInvalidArgument);
}

TEST(ReportTest, AJobsTablesAreSeenWholeOverServersAndLanes) {
  for (const TransportKind transport :
       {TransportKind::kInProcess, TransportKind::kTcp, TransportKind::kShared}) {
    ClusterOptions options;
    options.transport = transport;
    options.threads = 3;
    Cluster cluster(options);
    const auto client = cluster.Connect(0);
    const auto dense = client->CreateTable(DenseSpec("dense", 1000, 5));
    const auto sparse = client->CreateTable(SparseSpec("a sparse one", 2));
    ASSERT_OK(dense);
    ASSERT_OK(sparse);
    std::vector<Key> keys(100);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 7;
    std::vector<float> rows(500, 1.0f);
    auto ticket = client->Push(*dense, keys, ConstRows(rows.data(), 5));
    ASSERT_OK(ticket);
    ASSERT_OK(client->Wait(*ticket));
    ticket = client->PushPull(*sparse, keys, ConstRows(rows.data(), 2), Rows(rows.data() + 250, 2));
    ASSERT_OK(ticket);
    ASSERT_OK(client->Wait(*ticket));
    const auto reports = cluster.ConnectAdmin()->Describe();
    ASSERT_OK(reports);
    ASSERT_EQ(reports->size(), 2u);
    uint64_t dense_rows = 0, sparse_rows = 0, pushed = 0, pulled = 0;
    for (const ServerReport& report : *reports) {
      ASSERT_EQ(report.tables.size(), 2u);
      EXPECT_EQ(report.tables[0].spec, SparseSpec("a sparse one", 2));
      EXPECT_GT(report.tables[0].bytes, 0u);
      sparse_rows += report.tables[0].stored_rows;
      dense_rows += report.tables[1].stored_rows;
      pushed += report.tables[0].rows_pushed + report.tables[1].rows_pushed;
      pulled += report.tables[0].rows_pulled + report.tables[1].rows_pulled;
      EXPECT_GE(report.counters.rows_pushed, report.tables[1].rows_pushed);
    }
    EXPECT_EQ(dense_rows, 1000u);
    EXPECT_EQ(sparse_rows, 100u);
    EXPECT_EQ(pushed, 200u);
    EXPECT_EQ(pulled, 100u);
  }
}

}  // namespace
}  // namespace shoal::ps
