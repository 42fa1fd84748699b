#include "data/examples/example_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/examples/csv.h"
#include "data/examples/example_parser.h"
#include "data/examples/example_source.h"
#include "data/examples/record_fields.h"
#include "data/examples/table.h"

namespace shoal::data {
namespace {

constexpr size_t kReadableBehindLine = 8;  // ExampleParser::Parse

Status Refuse(const std::string& got, const std::string& expected) {
  return InvalidArgument(got.empty() ? "expected " + expected
                                     : fmt::format("got {}, expected {}", got, expected));
}

bool IsBlankByte(char c) { return c == ' ' || c == '\t'; }

// Whether the line's first word is a label: a pair has a colon.
bool HasLabel(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  return !word.empty() && word.find(':') == std::string_view::npos && word.front() != '#';
}

std::string_view WithoutLabel(std::string_view line) {
  while (!line.empty() && IsBlankByte(line.front())) line.remove_prefix(1);
  while (!line.empty() && !IsBlankByte(line.front())) line.remove_prefix(1);
  return line;
}

}  // namespace

struct ExampleInput::State {
  State(const ExampleOptions& given, ExampleSet* to) : options(given) {
    if (IsTable(options.format)) {
      sink = MakeExampleSink(options, to);
      assembler = std::make_unique<RowAssembler>(*options.csv, sink.get());
      fields = MakeJsonFields();
    } else {
      parser = MakeLibsvmParser(options, to);
    }
  }
  const ExampleOptions& options;
  std::unique_ptr<RowSink> sink;
  std::unique_ptr<RowAssembler> assembler;
  std::unique_ptr<FieldReader> fields;
  std::unique_ptr<ExampleParser> parser;
  std::string line;
  std::set<std::string> none;
};

ExampleInput::ExampleInput(const ExampleOptions& options, ExampleSet* set)
    : state_(std::make_unique<State>(options, set)) {}
ExampleInput::~ExampleInput() = default;

Status ExampleInput::AddObject(std::string_view json) {
  if (state_->assembler == nullptr)
    return Refuse("an object", "a text such as \"3:1 7:0.5\", since the model has no columns");
  while (!json.empty() && (IsBlankByte(json.back()) || json.back() == '\n' || json.back() == '\r'))
    json.remove_suffix(1);
  state_->assembler->Begin();
  const std::string expected = state_->fields->Read(json, state_->assembler.get());
  if (!expected.empty()) return Refuse(FirstWordOf(json), expected);
  return End();
}

void ExampleInput::Begin() {
  if (state_->assembler != nullptr) state_->assembler->Begin();
}

void ExampleInput::Cell(std::string_view column, const TableCell& cell) {
  if (state_->assembler != nullptr) state_->assembler->Value(column, cell);
}

Status ExampleInput::End() {
  if (state_->assembler == nullptr) return Internal("rows of cells are of tables");
  const RowFault fault = state_->assembler->End();
  return fault.any() ? Refuse(fault.got, fault.expected) : Status::Ok();
}

Status ExampleInput::AddLine(std::string_view line) {
  if (state_->parser == nullptr)
    return Refuse("a text", "an object with a field for each column, such as {\"age\": 31}");
  if (line.find_first_of(std::string_view("\n\r\0", 3)) != std::string_view::npos)
    return Refuse("several lines", "one example, of one line");
  if (line.size() > kMaxExampleLine)
    return Refuse(fmt::format("{} bytes", line.size()), "a shorter line");
  std::string& text = state_->line;
  text = "0 ";
  text += HasLabel(line) ? WithoutLabel(line) : line;
  const size_t end = text.size();
  text += '\n';
  text.append(kReadableBehindLine, '\0');
  const ParseError fault = state_->parser->Parse(text.data(), text.data() + end);
  if (fault.at == nullptr) return Status::Ok();
  const auto at = static_cast<size_t>(fault.at - text.data());
  return Refuse("'" + FirstWordOf(std::string_view(text).substr(at, end - at)) + "'",
                fault.expected);
}

const std::set<std::string>& ExampleInput::unknown() const {
  return state_->assembler == nullptr ? state_->none : state_->assembler->unknown();
}

}  // namespace shoal::data
