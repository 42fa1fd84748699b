// Parses lines of JSON into rows.
#include "data/examples/example_parser.h"
#include "data/examples/record_fields.h"

namespace shoal::data {
namespace {

class JsonParser final : public ExampleParser {
 public:
  JsonParser(const CsvColumns& columns, RowSink* sink) : assembler_(columns, sink) {}

  ParseError Parse(const char* text, const char* newline) override {
    while (newline > text && IsBlank(newline[-1])) --newline;
    if (text == newline) return {};
    assembler_.Begin();
    std::string expected = fields_->Read({text, static_cast<size_t>(newline - text)}, &assembler_);
    if (!expected.empty()) return {text, std::move(expected)};
    RowFault fault = assembler_.End();
    if (!fault.any()) return {};
    return {text, std::move(fault.expected), std::move(fault.got)};
  }

 private:
  const std::unique_ptr<FieldReader> fields_ = MakeJsonFields();
  RowAssembler assembler_;
};

}  // namespace

std::unique_ptr<ExampleParser> MakeJsonParser(const CsvColumns& columns, RowSink* sink) {
  return std::make_unique<JsonParser>(columns, sink);
}

}  // namespace shoal::data
