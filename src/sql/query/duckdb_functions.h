// The functions of DuckDB's library, by their names in duckdb.h. Private to this folder.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace shoal::sql {

// duckdb_result; its fields are deprecated or internal.
struct QueryResult {
  uint64_t counts[3] = {};
  void* pointers[3] = {};
};

// The functions of the library, by their names in duckdb.h.
struct DuckDbFunctions {
  static constexpr int kSuccess = 0;  // DuckDBSuccess
  void* library = nullptr;
  const char* (*library_version)() = nullptr;
  int (*open_ext)(const char* path, void** database, void* config, char** error) = nullptr;
  void (*close)(void** database) = nullptr;
  int (*connect)(void* database, void** connection) = nullptr;
  void (*disconnect)(void** connection) = nullptr;
  int (*query)(void* connection, const char* sql, QueryResult* result) = nullptr;
  const char* (*result_error)(QueryResult* result) = nullptr;
  uint64_t (*column_count)(QueryResult* result) = nullptr;
  const char* (*column_name)(QueryResult* result, uint64_t column) = nullptr;
  int (*column_type)(QueryResult* result, uint64_t column) = nullptr;
  void (*destroy_result)(QueryResult* result) = nullptr;
  uint64_t (*extract_statements)(void* connection, const char* sql, void** statements) = nullptr;
  const char* (*extract_statements_error)(void* statements) = nullptr;
  int (*prepare_extracted_statement)(void* connection, void* statements, uint64_t index,
                                     void** prepared) = nullptr;
  const char* (*prepare_error)(void* prepared) = nullptr;
  int (*prepared_statement_type)(void* prepared) = nullptr;
  uint64_t (*nparams)(void* prepared) = nullptr;
  void (*destroy_prepare)(void** prepared) = nullptr;
  void (*destroy_extracted)(void** statements) = nullptr;

  // Sets `function` to the library's function of this name.
  template <typename Function>
  Status Find(const char* name, Function* function) const {
    void* const found = ::dlsym(library, name);
    if (found == nullptr)
      return FailedPrecondition(std::string("the library lacks ") + name +
                                "; take libduckdb.so of DuckDB 1.1 or later");
    *function = reinterpret_cast<Function>(found);
    return Status::Ok();
  }

  Status FindAll() {
    TRY(Find("duckdb_library_version", &library_version));
    TRY(Find("duckdb_open_ext", &open_ext));
    TRY(Find("duckdb_close", &close));
    TRY(Find("duckdb_connect", &connect));
    TRY(Find("duckdb_disconnect", &disconnect));
    TRY(Find("duckdb_query", &query));
    TRY(Find("duckdb_result_error", &result_error));
    TRY(Find("duckdb_column_count", &column_count));
    TRY(Find("duckdb_column_name", &column_name));
    TRY(Find("duckdb_column_type", &column_type));
    TRY(Find("duckdb_destroy_result", &destroy_result));
    TRY(Find("duckdb_extract_statements", &extract_statements));
    TRY(Find("duckdb_extract_statements_error", &extract_statements_error));
    TRY(Find("duckdb_prepare_extracted_statement", &prepare_extracted_statement));
    TRY(Find("duckdb_prepare_error", &prepare_error));
    TRY(Find("duckdb_prepared_statement_type", &prepared_statement_type));
    TRY(Find("duckdb_nparams", &nparams));
    TRY(Find("duckdb_destroy_prepare", &destroy_prepare));
    return Find("duckdb_destroy_extracted", &destroy_extracted);
  }
};

// Those of scalar functions, since version 1.2.
struct DuckDbScalarFunctions {
  void* (*create_scalar_function)() = nullptr;
  void (*destroy_scalar_function)(void** function) = nullptr;
  void (*scalar_function_set_name)(void* function, const char* name) = nullptr;
  void (*scalar_function_add_parameter)(void* function, void* type) = nullptr;
  void (*scalar_function_set_return_type)(void* function, void* type) = nullptr;
  void (*scalar_function_set_extra_info)(void* function, void* info,
                                         void (*destroy)(void*)) = nullptr;
  void (*scalar_function_set_function)(void* function, void (*call)(void* info, void* input,
                                                                    void* output)) = nullptr;
  int (*register_scalar_function)(void* connection, void* function) = nullptr;
  void* (*scalar_function_get_extra_info)(void* info) = nullptr;
  void (*scalar_function_set_error)(void* info, const char* error) = nullptr;
  void* (*create_logical_type)(int type) = nullptr;
  void* (*create_list_type)(void* type) = nullptr;
  void (*destroy_logical_type)(void** type) = nullptr;
  uint64_t (*data_chunk_get_size)(void* chunk) = nullptr;
  void* (*data_chunk_get_vector)(void* chunk, uint64_t column) = nullptr;
  void* (*vector_get_data)(void* vector) = nullptr;
  uint64_t* (*vector_get_validity)(void* vector) = nullptr;
  void (*vector_ensure_validity_writable)(void* vector) = nullptr;
  void (*vector_assign_string_element_len)(void* vector, uint64_t row, const char* text,
                                           uint64_t length) = nullptr;
  void* (*list_vector_get_child)(void* vector) = nullptr;
  int (*list_vector_reserve)(void* vector, uint64_t size) = nullptr;
  int (*list_vector_set_size)(void* vector, uint64_t size) = nullptr;

  Status FindAll(const DuckDbFunctions& library) {
    TRY(library.Find("duckdb_create_scalar_function", &create_scalar_function));
    TRY(library.Find("duckdb_destroy_scalar_function", &destroy_scalar_function));
    TRY(library.Find("duckdb_scalar_function_set_name", &scalar_function_set_name));
    TRY(library.Find("duckdb_scalar_function_add_parameter", &scalar_function_add_parameter));
    TRY(library.Find("duckdb_scalar_function_set_return_type", &scalar_function_set_return_type));
    TRY(library.Find("duckdb_scalar_function_set_extra_info", &scalar_function_set_extra_info));
    TRY(library.Find("duckdb_scalar_function_set_function", &scalar_function_set_function));
    TRY(library.Find("duckdb_register_scalar_function", &register_scalar_function));
    TRY(library.Find("duckdb_scalar_function_get_extra_info", &scalar_function_get_extra_info));
    TRY(library.Find("duckdb_scalar_function_set_error", &scalar_function_set_error));
    TRY(library.Find("duckdb_create_logical_type", &create_logical_type));
    TRY(library.Find("duckdb_create_list_type", &create_list_type));
    TRY(library.Find("duckdb_destroy_logical_type", &destroy_logical_type));
    TRY(library.Find("duckdb_data_chunk_get_size", &data_chunk_get_size));
    TRY(library.Find("duckdb_data_chunk_get_vector", &data_chunk_get_vector));
    TRY(library.Find("duckdb_vector_get_data", &vector_get_data));
    TRY(library.Find("duckdb_vector_get_validity", &vector_get_validity));
    TRY(library.Find("duckdb_vector_ensure_validity_writable", &vector_ensure_validity_writable));
    TRY(library.Find("duckdb_vector_assign_string_element_len", &vector_assign_string_element_len));
    TRY(library.Find("duckdb_list_vector_get_child", &list_vector_get_child));
    TRY(library.Find("duckdb_list_vector_reserve", &list_vector_reserve));
    return library.Find("duckdb_list_vector_set_size", &list_vector_set_size);
  }
};

}  // namespace shoal::sql
