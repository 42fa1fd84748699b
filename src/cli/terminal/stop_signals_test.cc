#include "cli/terminal/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace shoal::cli {
namespace {

TEST(StopSignals, WhatWasInheritedAsIgnoredStaysIgnored) {
  const auto hup = ::signal(SIGHUP, SIG_DFL);
  const auto interrupt = ::signal(SIGINT, SIG_DFL);
  EXPECT_EQ(WithoutIgnored({SIGINT, SIGTERM, SIGHUP}), (std::vector{SIGINT, SIGTERM, SIGHUP}));
  ::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(WithoutIgnored({SIGINT, SIGTERM, SIGHUP}), (std::vector{SIGINT, SIGTERM}));
  ::signal(SIGINT, SIG_IGN);
  const auto term = ::signal(SIGTERM, SIG_IGN);
  EXPECT_EQ(WithoutIgnored({SIGINT, SIGTERM, SIGHUP}), (std::vector{SIGTERM}));
  ::signal(SIGHUP, hup);
  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, term);
}

}  // namespace
}  // namespace shoal::cli
