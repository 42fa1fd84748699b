// `shoal catalog`: databases and tables of a server, and who may read what of them.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "api/client/api_client.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/catalog/catalog_commands.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "data/catalog/table.h"
#include "data/corpus/corpus.h"
#include "data/datasets/schema.h"
#include "data/formats/record_reader.h"
#include "data/objects/object_stores.h"
#include "job/text/units.h"
#include "net/http.h"

namespace shoal::cli {
namespace {

constexpr uint64_t kSchemaRecords = 1000;

struct CatalogArguments {
  std::string name;    // of a database or table
  std::string column;  // or tag
  std::string value;   // grant, mask or action
  std::vector<std::string> words;
  std::vector<std::string> sources;
  std::string format;
  std::string owner;
  std::string team;
  std::string credentials;
  std::vector<std::string> columns;
  std::string to;
  std::string rows;
  std::vector<std::string> masks;
  std::string expires;
  std::vector<std::string> except;
  std::string user;
};

using Action = int (*)(const Context&, const CatalogArguments&, const api::ApiClient&);

std::string TableTarget(const std::string& name) {
  return "/api/v1/catalog/tables/" + net::PercentEncode(name);
}
std::string DatabaseTarget(const std::string& name) {
  return "/api/v1/catalog/databases/" + net::PercentEncode(name);
}

json::array TextList(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

std::string Joined(const json::object& object, std::string_view field) {
  std::string text;
  if (const json::value* const list = object.if_contains(field);
      list != nullptr && list->is_array())
    for (const json::value& one : list->get_array())
      if (one.is_string()) text += (text.empty() ? "" : ", ") + std::string(one.get_string());
  return text;
}

std::vector<json::object> ObjectsIn(const json::object& object, std::string_view field) {
  std::vector<json::object> found;
  if (const json::value* const list = object.if_contains(field);
      list != nullptr && list->is_array())
    for (const json::value& one : list->get_array())
      if (one.is_object()) found.push_back(one.get_object());
  return found;
}

int Confirm(const Status& status, const std::string& sentence) {
  return status.ok() ? PrintConfirmation(sentence + "\n") : PrintError(status);
}

// ---- Databases and tables ----

int CreateDatabase(const Context& /*context*/, const CatalogArguments& a,
                   const api::ApiClient& client) {
  const json::object body{{"team", a.team}, {"locations", TextList(a.sources)}};
  return Confirm(client.CallJson("PUT", DatabaseTarget(a.name), body).status(),
                 "database " + a.name + " of the team " + a.team);
}

// "NAME:TYPE".
Result<json::object> ColumnOf(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return InvalidArgument("--column: got " + EscapedUtf8(text) +
                           ", expected NAME:TYPE, such as age:integer");
  return json::object{{"name", text.substr(0, colon)}, {"type", text.substr(colon + 1)}};
}

// Reads the beginning of the sources, with the credentials of this shell.
Result<json::array> InferColumns(const std::vector<std::string>& sources,
                                 data::RecordFormat format) {
  data::ObjectStores stores;
  std::vector<std::string> files;
  for (const std::string& source : sources) {
    TRY_ASSIGN(const std::vector<std::string> some, stores.Expand(source));
    files.insert(files.end(), some.begin(), some.end());
  }
  files.resize(std::min<size_t>(files.size(), 1));
  TRY_ASSIGN(const data::Corpus corpus,
             data::Corpus::Open(files, data::ObjectContext(), data::ContentOf(format)));
  data::RecordReader reader(corpus, format);
  TRY_ASSIGN(const data::Schema schema, data::InferSchema(&reader, format, kSchemaRecords));
  json::array columns;
  for (const data::SchemaColumn& column : schema.columns)
    columns.push_back(json::object{{"name", column.name}, {"type", NameOf(column.type)}});
  // A table without records has its columns in the first line.
  for (size_t i = 0; columns.empty() && i < reader.columns().size(); ++i)
    columns.push_back(json::object{{"name", reader.columns()[i]}, {"type", "text"}});
  return columns;
}

Result<json::object> TableBody(const CatalogArguments& a) {
  json::object body;
  std::vector<std::string> sources = a.sources;
  for (std::string& source : sources) {
    std::error_code error;
    if (!data::IsRemoteUri(source)) source = std::filesystem::absolute(source, error).string();
  }
  body["sources"] = TextList(sources);
  data::RecordFormat format = data::FormatOfPath(sources.front());
  if (!a.format.empty()) {
    TRY_ASSIGN(format, data::ParseRecordFormat(a.format));
  }
  body["format"] = NameOf(format);
  json::array columns;
  for (const std::string& text : a.columns) {
    TRY_ASSIGN(json::object column, ColumnOf(text));
    columns.push_back(std::move(column));
  }
  if (columns.empty() && data::HasColumns(format)) {
    auto inferred = InferColumns(sources, format);
    if (!inferred.ok())
      return Status(inferred.status().code(),
                    inferred.status().message() +
                        "; give the columns with --column NAME:TYPE to make the table without "
                        "reading it");
    columns = std::move(*inferred);
  }
  if (!columns.empty()) body["columns"] = std::move(columns);
  if (!a.owner.empty()) body["owner"] = a.owner;
  if (!a.credentials.empty()) body["credentials"] = a.credentials;
  return body;
}

int CreateTable(const Context& context, const CatalogArguments& a, const api::ApiClient& client) {
  const auto body = TableBody(a);
  if (!body.ok()) return PrintError(body.status());
  const auto made = client.CallJson("PUT", TableTarget(a.name), *body);
  if (!made.ok()) return PrintError(made.status());
  if (context.json) return PrintConfirmation(ToText(*made) + "\n");
  std::string columns;
  for (const json::object& column : ObjectsIn(*made, "columns"))
    columns += (columns.empty() ? "" : ", ") + GetStringOr(column, "name", "") + " " +
               GetStringOr(column, "type", "");
  return PrintConfirmation("table " + a.name + " of " + GetStringOr(*made, "owner", "") +
                           (columns.empty() ? "" : ": " + columns) + "\n");
}

int List(const Context& context, const CatalogArguments& a, const api::ApiClient& client) {
  const auto reply = client.Get("/api/v1/catalog/tables" + api::QueryText({{"database", a.name}}));
  if (!reply.ok()) return PrintError(reply.status());
  const std::vector<json::object> tables = ObjectsIn(*reply, "items");
  if (context.json) {
    std::string out;
    for (const json::object& table : tables) out += ToText(table) + "\n";
    return PrintResult(out);
  }
  if (tables.empty()) {
    PrintNote("there are no tables that you may see; `shoal catalog create table` makes one");
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"TABLE", "OWNER", "FORMAT", "COLUMNS"}};
  for (const json::object& table : tables)
    rows.push_back({GetStringOr(table, "database", "") + "." + GetStringOr(table, "name", ""),
                    GetStringOr(table, "owner", ""), GetStringOr(table, "format", ""),
                    std::to_string(ObjectsIn(table, "columns").size())});
  return PrintResult(Table(rows));
}

std::string ShownGrant(const json::object& grant) {
  const std::string columns = Joined(grant, "columns");
  const std::string rows = GetStringOr(grant, "rows", "");
  std::string text =
      GetStringOr(grant, "to", "") + " reads " + (columns.empty() ? "all columns" : columns);
  if (!rows.empty()) text += " where " + rows;
  if (const json::value* const masks = grant.if_contains("masks");
      masks != nullptr && masks->is_object())
    for (const auto& [column, mask] : masks->get_object())
      if (mask.is_string())
        text += ", " + std::string(column) + " masked by " + std::string(mask.get_string());
  if (grant.contains("expires_us"))
    text += ", until " +
            FormatWall(WallTime(std::chrono::microseconds(GetIntOr(grant, "expires_us", 0))));
  return text;
}

std::string ShownColumn(const json::object& table, const json::object& column) {
  const std::string name = GetStringOr(column, "name", "");
  std::string text = name + "  " + GetStringOr(column, "type", "");
  if (const json::value* const tags = table.if_contains("tags");
      tags != nullptr && tags->is_object() && tags->get_object().contains(name))
    text += "  tags: " + Joined(tags->get_object(), name);
  if (const json::value* const masks = table.if_contains("masks");
      masks != nullptr && masks->is_object() && masks->get_object().contains(name)) {
    const json::value& rule = masks->get_object().at(name);
    if (rule.is_object()) {
      const std::string except = Joined(rule.get_object(), "except");
      text += "  mask: " + GetStringOr(rule.get_object(), "mask", "") +
              (except.empty() ? "" : ", not for " + except);
    }
  }
  return text;
}

int Show(const Context& context, const CatalogArguments& a, const api::ApiClient& client) {
  const auto table = client.Get(TableTarget(a.name));
  if (!table.ok()) return PrintError(table.status());
  if (context.json) return PrintResult(ToText(*table) + "\n");
  std::string text = "table    " + a.name + "\nowner    " + GetStringOr(*table, "owner", "") +
                     "\nformat   " + GetStringOr(*table, "format", "") + "\n";
  if (table->contains("sources")) text += "sources  " + Joined(*table, "sources") + "\n";
  if (const std::string secret = GetStringOr(*table, "credentials", ""); !secret.empty())
    text += "secret   " + secret + "\n";
  text += "columns\n";
  for (const json::object& column : ObjectsIn(*table, "columns"))
    text += "  " + ShownColumn(*table, column) + "\n";
  const std::vector<json::object> grants = ObjectsIn(*table, "grants");
  if (!grants.empty()) text += "grants\n";
  for (const json::object& grant : grants)
    text += "  " + GetStringOr(grant, "id", "") + "  " + ShownGrant(grant) + "\n";
  return PrintResult(text);
}

int Drop(const Context& /*context*/, const CatalogArguments& a, const api::ApiClient& client) {
  const bool table = a.name.find('.') != std::string::npos;
  return Confirm(
      client.CallJson("DELETE", table ? TableTarget(a.name) : DatabaseTarget(a.name)).status(),
      (table ? "table " : "database ") + a.name + " is removed; its objects stay");
}

// ---- Who may read what ----

// "COLUMN=MASK".
Result<json::object> MasksOf(const std::vector<std::string>& texts) {
  json::object masks;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return InvalidArgument("--mask: got " + EscapedUtf8(text) +
                             ", expected COLUMN=MASK, such as email=hash");
    masks[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return masks;
}

Result<json::object> GrantBody(const CatalogArguments& a) {
  json::object body{{"to", a.to}};
  if (!a.columns.empty()) body["columns"] = TextList(a.columns);
  if (!a.rows.empty()) body["rows"] = a.rows;
  TRY_ASSIGN(json::object masks, MasksOf(a.masks));
  if (!masks.empty()) body["masks"] = std::move(masks);
  if (!a.expires.empty()) {
    const auto time = job::ParseDurationMs(a.expires);
    if (!time || *time < 1000)
      return InvalidArgument("--expires: got " + EscapedUtf8(a.expires) +
                             ", expected a time of at least 1s, such as 30d");
    body["seconds"] = *time / 1000;
  }
  return body;
}

int Grant(const Context& context, const CatalogArguments& a, const api::ApiClient& client) {
  const auto body = GrantBody(a);
  if (!body.ok()) return PrintError(body.status());
  const auto made = client.CallJson("POST", TableTarget(a.name) + "/grants", *body);
  if (!made.ok()) return PrintError(made.status());
  if (context.json) return PrintConfirmation(ToText(*made) + "\n");
  return PrintConfirmation("grant " + GetStringOr(*made, "id", "") + ": " + ShownGrant(*made) +
                           "\n");
}

int Revoke(const Context& /*context*/, const CatalogArguments& a, const api::ApiClient& client) {
  const std::string target = TableTarget(a.name) + "/grants/" + net::PercentEncode(a.value);
  return Confirm(client.CallJson("DELETE", target).status(), "grant " + a.value + " is revoked");
}

std::string ColumnTarget(const CatalogArguments& a) {
  return TableTarget(a.name) + "/columns/" + net::PercentEncode(a.column);
}

int Tag(const Context& /*context*/, const CatalogArguments& a, const api::ApiClient& client) {
  const json::object body{{"tags", TextList(a.words)}};
  return Confirm(client.CallJson("PUT", ColumnTarget(a), body).status(),
                 "column " + a.column + (a.words.empty() ? " has no tags" : " is tagged"));
}

int MaskColumn(const Context& /*context*/, const CatalogArguments& a,
               const api::ApiClient& client) {
  const json::object body{{"mask", a.value}, {"except", TextList(a.except)}};
  return Confirm(client.CallJson("PUT", ColumnTarget(a), body).status(),
                 "column " + a.column + ": mask " + a.value);
}

int TagRule(const Context& /*context*/, const CatalogArguments& a, const api::ApiClient& client) {
  const std::string target = DatabaseTarget(a.name) + "/tags/" + net::PercentEncode(a.column);
  if (a.value == "none")
    return Confirm(client.CallJson("DELETE", target).status(),
                   "the tag " + a.column + " has no policy in " + a.name);
  const json::object body{{"action", a.value}, {"except", TextList(a.except)}};
  return Confirm(client.CallJson("PUT", target, body).status(),
                 "columns of " + a.name + " with the tag " + a.column + ": " + a.value);
}

std::string ShownAccess(const json::object& access) {
  if (const std::string why = GetStringOr(access, "refusal", ""); !why.empty())
    return "may read nothing: " + why;
  std::string columns;
  for (const json::object& column : ObjectsIn(access, "columns")) {
    const std::string mask = GetStringOr(column, "mask", "none");
    columns += (columns.empty() ? "" : ", ") + GetStringOr(column, "name", "") +
               (mask == "none" ? "" : " (" + mask + ")");
  }
  const std::string rows = GetStringOr(access, "rows", "");
  std::string text = GetBoolOr(access, "restricted", false) ? columns : "all";
  if (!rows.empty()) text += " where " + rows;
  if (const std::string until = GetStringOr(access, "until", ""); !until.empty())
    text += ", until " + until;
  return text;
}

int WhoCan(const Context& context, const CatalogArguments& a, const api::ApiClient& client) {
  const auto reply =
      client.Get(TableTarget(a.name) + "/access" +
                 api::QueryText({{"user", a.user.empty() ? "*" : a.user}, {"column", a.column}}));
  if (!reply.ok()) return PrintError(reply.status());
  std::string out;
  std::vector<std::vector<std::string>> rows = {{"USER", "READS"}};
  for (const json::object& access : ObjectsIn(*reply, "items")) {
    out += ToText(access) + "\n";
    rows.push_back({GetStringOr(access, "user", ""), ShownAccess(access)});
  }
  return PrintResult(context.json ? out : Table(rows));
}

// ---- Options ----

struct Adder {
  Run* chosen;

  std::shared_ptr<CatalogArguments> Add(CLI::App* parent, const char* name, const char* doc,
                                        Action action, const char* example, CLI::App** sub) const {
    auto arguments = std::make_shared<CatalogArguments>();
    *sub = parent->add_subcommand(name, doc);
    (*sub)->footer(std::string("Examples:\n  ") + example);
    (*sub)->fallthrough();  // --json and --server are the parent's
    (*sub)->callback([arguments, action, chosen = chosen] {
      *chosen = [arguments, action](const Context& context) {
        const auto client = OpenServer(context, "catalogues");
        return client.ok() ? action(context, *arguments, **client) : PrintError(client.status());
      };
    });
    return arguments;
  }
};

void AddCreate(CLI::App* parent, const Adder& adder) {
  CLI::App* create = parent->add_subcommand("create", "Make a database or a table");
  create->require_subcommand(1);
  create->fallthrough();
  create->footer(
      "Examples:\n  shoal catalog create table ads.clicks --source /data/ads/clicks.csv");
  CLI::App* sub = nullptr;
  auto a = adder.Add(
      create, "database", "Make a database, or change it (administrators)", &CreateDatabase,
      "shoal catalog create database ads --team ads --location s3://bucket/ads/", &sub);
  sub->add_option("NAME", a->name, "a-z, 0-9 and '_'")->required();
  sub->add_option("--team", a->team, "Whose operators manage its tables")->required();
  sub->add_option("--location", a->sources, "Below which its tables' sources lie; ends with '/'")
      ->required();
  a = adder.Add(create, "table", "Make a table over objects", &CreateTable,
                "shoal catalog create table ads.clicks --source 's3://bucket/ads/part-*.csv' "
                "--credentials ads-s3",
                &sub);
  sub->add_option("NAME", a->name, "DATABASE.TABLE")->required();
  sub->add_option("--source", a->sources, "Path, URI or pattern")->required();
  sub->add_option("--format", a->format, "As of `shoal data` [by the first source's name]");
  sub->add_option("--column", a->columns, "NAME:TYPE [inferred from the first records]");
  sub->add_option("--owner", a->owner, "User who may read all of it [you]");
  sub->add_option("--credentials", a->credentials,
                  "Secret of the database's team, with lines NAME=VALUE");
}

void AddTables(CLI::App* parent, const Adder& adder) {
  CLI::App* sub = nullptr;
  auto a = adder.Add(parent, "ls", "List tables", &List, "shoal catalog ls ads", &sub);
  sub->add_option("DATABASE", a->name, "Only of this database");
  a = adder.Add(parent, "show", "Show a table", &Show, "shoal catalog show ads.clicks", &sub);
  sub->add_option("TABLE", a->name, "DATABASE.TABLE")->required();
  a = adder.Add(parent, "drop", "Remove a table, or a database without tables", &Drop,
                "shoal catalog drop ads.clicks", &sub);
  sub->add_option("NAME", a->name, "DATABASE.TABLE or DATABASE")->required();
}

void AddGrants(CLI::App* parent, const Adder& adder) {
  CLI::App* sub = nullptr;
  auto a = adder.Add(parent, "grant", "Let a person or team read columns and rows", &Grant,
                     "shoal catalog grant ads.clicks --to team:research --columns age,city --rows "
                     "\"city = 'Oslo'\" --expires 30d",
                     &sub);
  sub->add_option("TABLE", a->name, "DATABASE.TABLE")->required();
  sub->add_option("--to", a->to, "user:NAME, team:NAME or everyone")->required();
  sub->add_option("--columns", a->columns, "Columns [all]")->delimiter(',');
  sub->add_option("--rows", a->rows, "Condition [all rows]");
  sub->add_option("--mask", a->masks, "COLUMN=MASK: null, hash, redact or truncate:N");
  sub->add_option("--expires", a->expires, "When it ends, such as 30d [never]");
  a = adder.Add(parent, "revoke", "Revoke a grant", &Revoke,
                "shoal catalog revoke ads.clicks 5f0c11aa", &sub);
  sub->add_option("TABLE", a->name, "DATABASE.TABLE")->required();
  sub->add_option("GRANT", a->value, "Its id, from `shoal catalog show`")->required();
  a = adder.Add(parent, "who-can", "Show who may read what", &WhoCan,
                "shoal catalog who-can ads.clicks --column email", &sub);
  sub->add_option("TABLE", a->name, "DATABASE.TABLE")->required();
  sub->add_option("--column", a->column, "Only this column");
  sub->add_option("--user", a->user, "Only this user [all]");
}

void AddColumns(CLI::App* parent, const Adder& adder) {
  CLI::App* sub = nullptr;
  auto a = adder.Add(parent, "tag", "Set the tags of a column", &Tag,
                     "shoal catalog tag ads.clicks email pii", &sub);
  sub->add_option("TABLE", a->name, "DATABASE.TABLE")->required();
  sub->add_option("COLUMN", a->column, "Column")->required();
  sub->add_option("TAGS", a->words, "All tags of the column [none]");
  a = adder.Add(parent, "mask", "Mask a column for all but the owner", &MaskColumn,
                "shoal catalog mask ads.clicks email hash --except team:legal", &sub);
  sub->add_option("TABLE", a->name, "DATABASE.TABLE")->required();
  sub->add_option("COLUMN", a->column, "Column")->required();
  sub->add_option("MASK", a->value, "null, hash, redact, truncate:N; none removes it")->required();
  sub->add_option("--except", a->except, "Who sees it without the mask: user:NAME, team:NAME");
  a = adder.Add(parent, "tag-policy", "Deny or mask all columns with a tag", &TagRule,
                "shoal catalog tag-policy ads pii hash --except team:legal", &sub);
  sub->add_option("DATABASE", a->name, "Database")->required();
  sub->add_option("TAG", a->column, "Tag")->required();
  sub->add_option("ACTION", a->value, "deny, or a mask; none removes the policy")->required();
  sub->add_option("--except", a->except, "For whom it does not hold: user:NAME, team:NAME");
}

// ---- Lineage ----

struct LineageArguments {
  std::string what;
  std::string column;
};

std::string ShownLineage(const json::object& record) {
  std::string text =
      GetStringOr(record, "job", "") + "  " +
      FormatWall(WallTime(std::chrono::microseconds(GetIntOr(record, "time_us", 0)))) + "  " +
      GetStringOr(record, "user", "") + " (" + GetStringOr(record, "team", "") + ")\n";
  for (const json::object& table : ObjectsIn(record, "tables")) {
    const std::string columns = Joined(table, "columns");
    text += "  " + GetStringOr(table, "data", "") + ": " + GetStringOr(table, "table", "") +
            (columns.empty() ? "" : " (" + columns + ")");
    if (const std::string rows = GetStringOr(table, "rows", ""); !rows.empty())
      text += " where " + rows;
    text += "\n";
    for (const json::object& object : ObjectsIn(table, "objects"))
      text += "    " + GetStringOr(object, "uri", "") + "  " + GetStringOr(object, "version", "") +
              "\n";
  }
  if (const json::value* const outputs = record.if_contains("outputs");
      outputs != nullptr && outputs->is_object())
    for (const auto& [name, place] : outputs->get_object())
      if (place.is_string())
        text += "  -> " + std::string(name) + ": " + std::string(place.get_string()) + "\n";
  return text;
}

int ShowLineage(const Context& context, const LineageArguments& arguments) {
  const auto client = OpenServer(context, "lineages");
  if (!client.ok()) return PrintError(client.status());
  std::vector<std::pair<std::string, std::string>> query = {{"column", arguments.column}};
  const bool place = arguments.what.find('/') != std::string::npos;
  if (!arguments.what.empty()) {
    std::error_code error;
    const bool local = place && !data::IsRemoteUri(arguments.what);
    query.emplace_back(
        place ? "model" : "job",
        local ? std::filesystem::absolute(arguments.what, error).lexically_normal().string()
              : arguments.what);
  }
  const auto reply = (*client)->Get("/api/v1/lineage" + api::QueryText(query));
  if (!reply.ok()) return PrintError(reply.status());
  const std::vector<json::object> records = ObjectsIn(*reply, "items");
  if (records.empty() && !context.json) {
    PrintNote("no job that you may see has trained on such a table");
    return 0;
  }
  std::string text;
  for (const json::object& record : records)
    text += context.json ? ToText(record) + "\n" : ShownLineage(record);
  return PrintResult(text);
}

constexpr const char* kCatalogFooter = R"help(Examples:
  shoal catalog create table ads.clicks --source 's3://bucket/ads/part-*.csv' --credentials ads-s3
  shoal catalog grant ads.clicks --to team:research --columns age,city --rows "age >= 18"
  shoal catalog tag ads.clicks email pii
  shoal catalog tag-policy ads pii hash --except team:legal
  shoal catalog who-can ads.clicks --column email

Jobs of the server name a table as `data: {train: {table: ads.clicks, columns: [age, city]}}` and
read what their user may see (docs/catalog.md).)help";

constexpr const char* kLineageFooter = R"help(Examples:
  shoal lineage clicks-1a2b3c                  the tables, columns and objects of a job
  shoal lineage s3://bucket/models/clicks      of the job that wrote the model
  shoal lineage --column ads.clicks.email      the jobs that trained on a column)help";

}  // namespace

void AddCatalog(CLI::App& app, Run* chosen) {
  CLI::App* sub =
      app.add_subcommand("catalog", "Tables of a server, and who may read what of them");
  const Adder adder{chosen};
  AddCreate(sub, adder);
  AddTables(sub, adder);
  AddGrants(sub, adder);
  AddColumns(sub, adder);
  sub->require_subcommand(1);
  sub->footer(kCatalogFooter);
}

void AddLineage(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<LineageArguments>();
  CLI::App* sub = app.add_subcommand("lineage", "Which jobs trained on which tables and columns");
  sub->add_option("WHAT", arguments->what, "A job's id, or the path or URI of a model");
  sub->add_option("--column", arguments->column, "DATABASE.TABLE or DATABASE.TABLE.COLUMN");
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return ShowLineage(context, *arguments); };
  });
  sub->footer(kLineageFooter);
}

}  // namespace shoal::cli
