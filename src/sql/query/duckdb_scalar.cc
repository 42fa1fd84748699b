// Scalar functions of texts: DuckDB calls C++ code for a vector of rows.
#include <cstring>
#include <memory>
#include <utility>

#include "sql/query/duckdb_functions.h"
#include "sql/query/duckdb_library.h"

namespace shoal::sql {
namespace {

// duckdb_type
constexpr int kFloat = 10;
constexpr int kDouble = 11;
constexpr int kVarchar = 17;

// duckdb_list_entry
struct ListEntry {
  uint64_t offset;
  uint64_t length;
};

// duckdb_string_t: short texts stand in it, of others a pointer.
struct StringValue {
  uint32_t length;
  char prefix[4];
  union {
    char rest[8];
    const char* pointer;
  };
  std::string_view view() const {
    constexpr uint32_t kInlined = 12;
    return {length <= kInlined ? prefix : pointer, length};
  }
};
static_assert(sizeof(StringValue) == 16);

bool IsValid(const uint64_t* validity, uint64_t row) {
  return validity == nullptr || (validity[row / 64] >> (row % 64) & 1) != 0;
}

// Writes values to the rows of a result.
class ResultWriter {
 public:
  ResultWriter(const DuckDbScalarFunctions& call, void* output) : call_(call), output_(output) {}

  void Write(uint64_t row, const TextValue& value) {
    if (const auto* const text = std::get_if<std::string>(&value)) {
      call_.vector_assign_string_element_len(output_, row, text->data(), text->size());
    } else if (const auto* const number = std::get_if<double>(&value)) {
      static_cast<double*>(call_.vector_get_data(output_))[row] = *number;
    } else if (const auto* const numbers = std::get_if<std::vector<float>>(&value)) {
      WriteList(row, *numbers);
    } else {
      WriteNull(row);
    }
  }

  void WriteNull(uint64_t row) {
    call_.vector_ensure_validity_writable(output_);
    call_.vector_get_validity(output_)[row / 64] &= ~(uint64_t{1} << (row % 64));
  }

 private:
  void WriteList(uint64_t row, const std::vector<float>& numbers) {
    const uint64_t size = used_ + numbers.size();
    call_.list_vector_reserve(output_, size);
    call_.list_vector_set_size(output_, size);
    auto* const to =
        static_cast<float*>(call_.vector_get_data(call_.list_vector_get_child(output_)));
    std::memcpy(to + used_, numbers.data(), numbers.size() * sizeof(float));
    static_cast<ListEntry*>(call_.vector_get_data(output_))[row] = {used_, numbers.size()};
    used_ = size;
  }

  const DuckDbScalarFunctions& call_;
  void* const output_;
  uint64_t used_ = 0;  // of the lists' elements
};

// The functions of the one library that this process opens: a callback has nothing else to find
// them with. Filled before the first callback can run.
DuckDbScalarFunctions& LoadedFunctions() {
  static DuckDbScalarFunctions functions;
  return functions;
}

void CallFunction(void* info, void* input, void* output) {
  const DuckDbScalarFunctions& call = LoadedFunctions();
  const auto& function =
      *static_cast<const TextFunction*>(call.scalar_function_get_extra_info(info));
  const uint64_t rows = call.data_chunk_get_size(input);
  void* const column = call.data_chunk_get_vector(input, 0);
  const auto* const values = static_cast<const StringValue*>(call.vector_get_data(column));
  const uint64_t* const validity = call.vector_get_validity(column);
  std::vector<std::string_view> texts;
  for (uint64_t row = 0; row < rows; ++row) {
    if (IsValid(validity, row)) texts.push_back(values[row].view());
  }
  const Result<std::vector<TextValue>> results = function.call(texts);
  if (!results.ok() || results->size() != texts.size()) {
    const std::string why = results.ok() ? "wrong number of values" : results.status().message();
    call.scalar_function_set_error(info, why.c_str());
    return;
  }
  ResultWriter writer(call, output);
  size_t next = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    if (IsValid(validity, row)) {
      writer.Write(row, (*results)[next++]);
    } else {
      writer.WriteNull(row);
    }
  }
}

void Delete(void* function) { delete static_cast<TextFunction*>(function); }

// A type, destroyed at the end.
class LogicalType {
 public:
  LogicalType(const DuckDbScalarFunctions& call, void* type) : call_(call), type_(type) {}
  LogicalType(const LogicalType&) = delete;
  LogicalType& operator=(const LogicalType&) = delete;
  ~LogicalType() { call_.destroy_logical_type(&type_); }
  void* get() const { return type_; }

 private:
  const DuckDbScalarFunctions& call_;
  void* type_;
};

}  // namespace

Status DuckDb::Register(TextFunction function) {
  DuckDbScalarFunctions& call = LoadedFunctions();
  TRY(call.FindAll(*functions_));
  const LogicalType text(call, call.create_logical_type(kVarchar));
  const LogicalType number(call, call.create_logical_type(kDouble));
  const LogicalType single(call, call.create_logical_type(kFloat));
  const LogicalType numbers(call, call.create_list_type(single.get()));
  const LogicalType* const returned[] = {&text, &number, &numbers};
  void* made = call.create_scalar_function();
  call.scalar_function_set_name(made, function.name.c_str());
  call.scalar_function_add_parameter(made, text.get());
  call.scalar_function_set_return_type(made,
                                       returned[static_cast<size_t>(function.returns)]->get());
  call.scalar_function_set_function(made, &CallFunction);
  const std::string name = function.name;
  call.scalar_function_set_extra_info(made, new TextFunction(std::move(function)), &Delete);
  const int state = call.register_scalar_function(connection_, made);
  call.destroy_scalar_function(&made);
  if (state == DuckDbFunctions::kSuccess) return Status::Ok();
  return FailedPrecondition("DuckDB takes no function " + name);
}

}  // namespace shoal::sql
