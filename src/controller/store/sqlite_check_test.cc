#include "controller/store/sqlite_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "controller/store/sqlite_connection.h"
#include "controller/store/sqlite_store.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SqliteCheck : public testing::Test {
 protected:
  void SetUp() override {
    const auto store = OpenSqliteStore(path_);
    ASSERT_TRUE(store.ok());
    NewJob job;
    job.id = "a-1";
    job.name = "a";
    ASSERT_TRUE((*store)->Submit(job).ok());
  }
  TempDir dir_ = std::move(*TempDir::Create("sqlite-check"));
  const std::filesystem::path path_ = dir_.path() / "shoal.db";
};

TEST_F(SqliteCheck, AWholeFileHasNoDamage) {
  const auto damage = FindStoreDamage(path_);
  ASSERT_TRUE(damage.ok()) << damage.status().message();
  EXPECT_THAT(*damage, IsEmpty());
}

TEST_F(SqliteCheck, EventsThatAreNoJsonAreCounted) {
  auto db = SqliteConnection::Open(path_, 1000);
  ASSERT_TRUE(db.ok());
  ASSERT_TRUE(db->Execute("UPDATE events SET body = '{'").ok());
  const auto damage = FindStoreDamage(path_);
  ASSERT_TRUE(damage.ok());
  EXPECT_THAT(*damage, ElementsAre(HasSubstr("a-1: 1 of its events cannot be read")));
}

TEST_F(SqliteCheck, WhatIsNoDatabaseIsAnError) {
  const std::filesystem::path other = dir_.path() / "other.db";
  std::ofstream(other) << "garbage";
  EXPECT_FALSE(FindStoreDamage(other).ok());
}

}  // namespace
}  // namespace shoal::controller
