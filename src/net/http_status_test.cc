#include "net/http_status.h"

#include <gtest/gtest.h>

namespace shoal::net {
namespace {

TEST(HttpStatus, WhatMayGoWellLaterIsUnavailable) {
  for (const int status : {429, 500, 502, 503, 504, 599})
    EXPECT_EQ(CodeOfHttp(status), Code::kUnavailable) << status;
  EXPECT_EQ(CodeOfHttp(501), Code::kUnimplemented);
}

TEST(HttpStatus, RefusalsAreToldApart) {
  EXPECT_EQ(CodeOfHttp(400), Code::kInvalidArgument);
  EXPECT_EQ(CodeOfHttp(401), Code::kUnauthenticated);
  EXPECT_EQ(CodeOfHttp(403), Code::kPermissionDenied);
  EXPECT_EQ(CodeOfHttp(404), Code::kNotFound);
  EXPECT_EQ(CodeOfHttp(409), Code::kAlreadyExists);
  EXPECT_EQ(CodeOfHttp(410), Code::kOutOfRange);
  EXPECT_EQ(CodeOfHttp(422), Code::kInvalidArgument);
  EXPECT_EQ(CodeOfHttp(302), Code::kInternal);
  EXPECT_EQ(CodeOfHttp(418), Code::kInternal);
}

}  // namespace
}  // namespace shoal::net
