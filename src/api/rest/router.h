// Finds the route of a request and checks the request against it: parameters of path and query,
// and the fields of a JSON body.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/rest/problem.h"
#include "api/rest/route.h"
#include "base/json.h"
#include "net/http/server_exchange.h"

namespace shoal::api {

// A checked request: the values of its parameters, texts as texts, numbers as integers, booleans as
// booleans, times as microseconds since the epoch.
struct Arguments {
  json::object path;
  json::object query;
  json::object body;

  std::string PathText(std::string_view name) const { return GetStringOr(path, name, ""); }
  // Of the query, else of the body; empty if the request does not give it.
  std::string Text(std::string_view name) const;
  int64_t Integer(std::string_view name, int64_t other) const;
  bool Boolean(std::string_view name, bool other) const;
  bool Has(std::string_view name) const;
  // The elements of a list of texts.
  std::vector<std::string> Texts(std::string_view name) const;
};

struct Match {
  const Route* route = nullptr;
  json::object path;
};

// The route, or the reply 404 or 405 (with the header Allow).
std::variant<Match, net::HttpServerReply> FindMatch(const net::HttpServerRequest& request);

// The checked request, or the reply 400 (query), 415, or 422 with all wrong fields (body).
std::variant<Arguments, net::HttpServerReply> CheckRequest(const Match& match,
                                                           const net::HttpServerRequest& request);

// Checks fields of a JSON object against the query parameters of the route, for messages that say
// the same as the request does. InvalidArgument names the first wrong one.
Status CheckValues(const Route& route, const json::object& fields);

// RFC 3339 in UTC ("2026-11-21T05:04:21Z", with or without fractions) as microseconds.
std::optional<int64_t> ParseTime(std::string_view text);

}  // namespace shoal::api
