#include "data/examples/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "data/corpus/source_file.h"
#include "data/examples/example_parser.h"

namespace shoal::data {
namespace {

constexpr size_t kMaxHeader = 1u << 20;
constexpr size_t kHeaderRoom = 1u << 14;  // at first; doubled up to the most
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsNumber(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size() && !cell.empty();
}

Result<std::vector<std::string>> CellsOf(std::string_view line, char delimiter) {
  std::vector<std::string> cells;
  std::string room;
  const char* const end = line.data() + line.size();
  for (const char* at = line.data(); at <= end;) {
    std::string_view cell;
    if (!NextCell(&at, end, delimiter, &room, &cell))
      return InvalidArgument("the first line has a quote that is not closed");
    cells.emplace_back(cell);
    if (cells.size() > kMaxCsvColumns) {
      return InvalidArgument(
          fmt::format("the first line has more than {} columns", kMaxCsvColumns));
    }
  }
  return cells;
}

// The index of the column with this name, or with this number from 1; kNone if there is none.
size_t Find(const std::vector<std::string>& names, std::string_view wanted) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  const bool whole = error == std::errc() && end == wanted.data() + wanted.size();
  return whole && number >= 1 && number <= names.size() ? number - 1 : CsvColumns::kNone;
}

// The first dozen.
std::string ListOf(const std::vector<std::string>& names) {
  const size_t shown = std::min<size_t>(names.size(), 12);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + shown, ", "),
                     shown < names.size() ? ", …" : "");
}

Status NoColumn(const char* what, std::string_view wanted, const std::vector<std::string>& names) {
  return InvalidArgument(
      fmt::format("{}: there is no column {}; the columns are {}", what, wanted, ListOf(names)));
}

// The index of the column with exactly this name.
size_t FindName(const std::vector<std::string>& names, std::string_view wanted) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  return found == names.end() ? CsvColumns::kNone : static_cast<size_t>(found - names.begin());
}

size_t FindLabel(const CsvOptions& options, const std::vector<std::string>& names) {
  if (options.trained) return FindName(names, options.trained->label);
  return options.label.empty() ? 0 : Find(names, options.label);
}

bool HasHeader(const CsvOptions& options, const std::vector<std::string>& cells) {
  if (options.header != CsvHeader::kAuto) return options.header == CsvHeader::kYes;
  if (options.trained && !options.trained->header) return false;
  return std::none_of(cells.begin(), cells.end(), [](const auto& cell) { return IsNumber(cell); });
}

Status CheckHeader(const CsvOptions& options, const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second)
      return InvalidArgument(fmt::format("two columns are called '{}'", name));
  }
  if (!options.trained) return Status::Ok();
  const std::vector<std::string>& known = options.trained->names;
  const bool any = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
    return name != options.trained->label && seen.contains(name);
  });
  if (any) return Status::Ok();
  return InvalidArgument(
      fmt::format("the first line names none of the columns that the model was trained on: got {}, "
                  "expected some of {}",
                  ListOf(names), ListOf(known)));
}

// Names for columns without a header.
Result<std::vector<std::string>> NamesByPlace(const CsvOptions& options, size_t count) {
  std::vector<std::string> names;
  if (!options.trained) {
    for (size_t i = 1; i <= count; ++i) names.push_back(std::to_string(i));
    return names;
  }
  names = options.trained->names;
  if (names.size() == count + 1) std::erase(names, options.trained->label);
  if (names.size() == count) return names;
  return InvalidArgument(fmt::format(
      "the first line has {} cells, expected {} as in the data that the model was trained on, or "
      "{} without the label",
      count, names.size(), names.size() - 1));
}

Status MarkCategorical(const CsvOptions& options, const std::vector<std::string>& names,
                       CsvColumns* columns) {
  if (options.trained) {
    for (const std::string& name : options.trained->categorical) {
      const size_t column = FindName(names, name);
      if (column != CsvColumns::kNone) columns->columns[column].categorical = true;
    }
    return Status::Ok();
  }
  std::string_view rest = options.categorical;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view name = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    const size_t column = Find(names, name);
    if (column == CsvColumns::kNone) return NoColumn("categorical", name, names);
    columns->columns[column].categorical = true;
  }
  return Status::Ok();
}

// The scales of the columns that the model was trained on, by name.
void TakeScales(const CsvOptions& options, const std::vector<std::string>& names,
                CsvColumns* columns) {
  if (!options.trained || options.trained->scales.empty()) return;
  const CsvSchema& trained = *options.trained;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t column = FindName(trained.names, names[i]);
    if (column < trained.scales.size()) columns->columns[i].scale = trained.scales[column];
  }
  columns->scaled = true;
  columns->schema.row_scale = trained.row_scale;
}

// Finds the columns of weights and keys, which are no features.
Status TakeSpecial(const CsvOptions& options, const std::vector<std::string>& names,
                   CsvColumns* columns) {
  const auto find = [&](const char* what, const std::string& wanted) -> Result<size_t> {
    if (wanted.empty()) return CsvColumns::kNone;
    const size_t column = Find(names, wanted);
    if (column == CsvColumns::kNone) return NoColumn(what, wanted, names);
    if (column != columns->label || options.trained) return column;
    return InvalidArgument(
        fmt::format("{}: column {} is the label's; name another", what, names[column]));
  };
  const auto ignore = [&](size_t column, std::string* name) {
    if (column == CsvColumns::kNone) return;
    columns->columns[column].ignored = true;
    *name = names[column];
  };
  if (options.trained) {
    ignore(FindName(names, options.trained->weight), &columns->schema.weight);
    ignore(FindName(names, options.trained->key), &columns->schema.key);
    if (options.keep_weights && !options.trained->weight.empty()) {
      columns->weight = FindName(names, options.trained->weight);
      if (columns->weight == CsvColumns::kNone)
        return NoColumn("weight", options.trained->weight, names);
    }
    if (!options.keep_keys) return Status::Ok();
    TRY_ASSIGN(columns->key, find("key", options.key));
    return Status::Ok();
  }
  TRY_ASSIGN(columns->weight, find("weight", options.weight));
  TRY_ASSIGN(const size_t key, find("key", options.key));
  if (key != CsvColumns::kNone && key == columns->weight)
    return InvalidArgument(fmt::format("key: column {} is that of the weights", names[key]));
  ignore(columns->weight, &columns->schema.weight);
  ignore(key, &columns->schema.key);
  if (options.keep_keys) columns->key = key;
  return Status::Ok();
}

void NumberFields(CsvColumns* columns) {
  std::vector<CsvColumns::Column*> order;
  for (size_t i = 0; i < columns->columns.size(); ++i) {
    if (columns->IsFeature(i)) order.push_back(&columns->columns[i]);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->feature < b->feature; });
  for (size_t i = 0; i < order.size(); ++i) order[i]->field = static_cast<uint16_t>(i);
}

}  // namespace

Result<std::shared_ptr<const CsvColumns>> CsvColumns::FromFirstLine(std::string_view line,
                                                                    const CsvOptions& options) {
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  while (line.ends_with('\r') || line.ends_with('\n')) line.remove_suffix(1);
  TRY_ASSIGN(std::vector<std::string> names, CellsOf(line, options.delimiter));
  const bool header = HasHeader(options, names);
  if (header) {
    TRY(CheckHeader(options, names));
  } else {
    TRY_ASSIGN(names, NamesByPlace(options, names.size()));
  }
  TRY_ASSIGN(const std::shared_ptr<CsvColumns> made, Interpret(std::move(names), header, options));
  if (header) made->header = line;
  return std::shared_ptr<const CsvColumns>(made);
}

Result<std::shared_ptr<const CsvColumns>> CsvColumns::FromNames(std::vector<std::string> names,
                                                                const CsvOptions& options) {
  if (names.size() > kMaxCsvColumns)
    return InvalidArgument(fmt::format("the table has more than {} columns", kMaxCsvColumns));
  TRY(CheckHeader(options, names));
  std::vector<std::string> absent;
  if (options.trained) {
    const std::set<std::string> here(names.begin(), names.end());
    names = options.trained->names;
    for (const std::string& name : names) {
      if (!here.contains(name)) absent.push_back(name);
    }
  }
  TRY_ASSIGN(const std::shared_ptr<CsvColumns> made, Interpret(std::move(names), true, options));
  made->absent = std::move(absent);
  return std::shared_ptr<const CsvColumns>(made);
}

Result<std::shared_ptr<CsvColumns>> CsvColumns::Interpret(std::vector<std::string> names,
                                                          bool header, const CsvOptions& options) {
  auto made = std::make_shared<CsvColumns>();
  made->delimiter = options.delimiter;
  made->schema.header = header;
  for (const std::string& name : names) made->columns.push_back({.feature = HashBytes(name)});
  made->label = FindLabel(options, names);
  if (made->label == kNone && options.label_needed)
    return NoColumn("label", options.trained ? options.trained->label : options.label, names);
  TRY(MarkCategorical(options, names, made.get()));
  TRY(TakeSpecial(options, names, made.get()));
  TakeScales(options, names, made.get());
  NumberFields(made.get());
  for (size_t i = 0; i < names.size(); ++i) {
    if (made->columns[i].categorical) made->schema.categorical.push_back(names[i]);
  }
  if (made->label != kNone) made->schema.label = names[made->label];
  if (options.trained) made->schema.classes = options.trained->classes;
  made->schema.names = std::move(names);
  if (made->scaled) {
    for (const Column& column : made->columns) made->schema.scales.push_back(column.scale);
  }
  return made;
}

std::shared_ptr<const CsvColumns> CsvColumns::WithScales(std::vector<ColumnScale> scales,
                                                         float row_scale) const {
  auto made = std::make_shared<CsvColumns>(*this);
  made->scaled = true;
  for (size_t i = 0; i < scales.size() && i < made->columns.size(); ++i)
    made->columns[i].scale = scales[i];
  made->schema.scales = std::move(scales);
  made->schema.row_scale = row_scale;
  return made;
}

Result<std::shared_ptr<const CsvColumns>> CsvColumns::Make(const Corpus& corpus,
                                                           const CsvOptions& options) {
  const SourceFile& file = corpus.files().front();
  TRY_ASSIGN(const std::unique_ptr<TextStream> stream, TextStream::Open(file));
  std::string line(kHeaderRoom, '\0');
  size_t filled = 0;
  while (filled < kMaxHeader) {
    if (filled == line.size()) line.resize(2 * filled);
    TRY_ASSIGN(const size_t got, stream->Read(line.data() + filled, line.size() - filled));
    const auto newline = std::find(line.begin() + static_cast<std::ptrdiff_t>(filled),
                                   line.begin() + static_cast<std::ptrdiff_t>(filled + got), '\n');
    filled += got;
    if (got != 0 && newline == line.begin() + static_cast<std::ptrdiff_t>(filled)) continue;
    line.resize(static_cast<size_t>(newline - line.begin()));
    auto columns = FromFirstLine(line, options);
    if (!columns.ok())
      return InvalidArgument(file.path.string() + ": " + columns.status().message());
    return columns;
  }
  return InvalidArgument(
      fmt::format("{}: the first line has more than {} bytes", file.path.string(), kMaxHeader));
}

}  // namespace shoal::data
