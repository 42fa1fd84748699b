// A fixture with an embedded store in a directory of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"
#include "controller/store/open_store.h"
#include "controller/store/store.h"

namespace shoal::controller {

class TempStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDir::Create();
    ASSERT_TRUE(directory.ok());
    directory_.emplace(std::move(*directory));
    auto store = OpenStore("sqlite:" + (directory_->path() / "shoal.db").string());
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    store_ = std::move(*store);
  }

  std::optional<TempDir> directory_;
  std::unique_ptr<Store> store_;
};

}  // namespace shoal::controller
