// Sources and progress of the commands of `shoal data`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/id.h"
#include "base/utf8.h"
#include "cli/data/data_commands.h"
#include "data/objects/object_stores.h"
#include "job/execution/plan.h"

namespace shoal::cli {

void AddMaxBadOption(CLI::App* sub, double* percent) {
  sub->add_option("--max-bad", *percent, "Malformed records that are left out, in per cent of all")
      ->check(CLI::Range(0.0, 100.0).description(""))
      ->type_name("PERCENT");
}

void ProgressLine::Update(uint64_t bytes, uint64_t total) {
  const TimePoint now = RealClock::Get()->Now();
  constexpr auto kInterval = std::chrono::milliseconds(200);
  if (!shown_ || now - last_ < kInterval) return;
  last_ = now;
  std::string text = fmt::format("\r{} {}", verb_, job::FormatBytes(static_cast<int64_t>(bytes)));
  if (total > 0)
    text += fmt::format(" of {}, {} %", job::FormatBytes(static_cast<int64_t>(total)),
                        std::min<uint64_t>(100, 100 * bytes / total));
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  if (seconds > 0)
    text += fmt::format(
        ", {}/s", job::FormatBytes(static_cast<int64_t>(static_cast<double>(bytes) / seconds)));
  fmt::print(stderr, "{}\x1b[K", text);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::Erase() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

Result<data::RecordFormat> FormatOf(const std::string& format,
                                    const std::vector<std::string>& sources) {
  if (!format.empty()) return data::ParseRecordFormat(format);
  return data::FormatOfPath(sources.front());
}

Result<data::Corpus> OpenSources(const std::vector<std::string>& sources,
                                 data::RecordFormat format) {
  std::vector<std::string> files;
  data::ObjectStores stores;
  for (const std::string& source : sources) {
    TRY_ASSIGN(const std::vector<std::string> some, stores.Expand(source));
    files.insert(files.end(), some.begin(), some.end());
  }
  return data::Corpus::Open(files, data::ObjectContext(), data::ContentOf(format));
}

std::string VersionOf(const data::Corpus& corpus) {
  std::string text = fmt::format("{:016x}", corpus.fingerprint());
  for (const data::SourceFile& file : corpus.files()) {
    std::error_code error;
    if (file.object != nullptr) continue;
    const auto written = std::filesystem::last_write_time(file.path, error).time_since_epoch();
    text += fmt::format("\n{}", error ? 0 : written.count());
  }
  return Sha256Hex(text);
}

Status CheckNamed(const std::vector<data::BatchColumn>& columns,
                  const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::ranges::find(columns, name, &data::BatchColumn::name) == columns.end())
      return InvalidArgument("the first 1000 records have no column " + EscapedUtf8(name) +
                             "; `shoal data schema` lists them");
  }
  return Status::Ok();
}

}  // namespace shoal::cli
