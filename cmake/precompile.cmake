# Precompiled headers: the standard library's and third parties' headers that most files read, parsed once for a build
# instead of once a file. Two sets: for rooms and for tests. CLI11 is in neither: it defines constants with constructors,
# which every file of the room would then compile.
#   A file still includes what it uses: SHOAL_PCH=OFF builds without, and must succeed.
# Only headers of others belong here: one of ours would rebuild everything whenever it changes.
option(SHOAL_PCH "Precompile other people's headers" ON)
if(NOT SHOAL_PCH)
  return()
endif()

set(SHOAL_PCH_HEADERS
  <algorithm> <array> <atomic> <cerrno> <charconv> <chrono> <cmath> <condition_variable> <csignal> <cstdint> <cstdlib>
  <cstring> <deque> <filesystem> <fstream> <functional> <future> <map> <memory> <mutex> <optional> <random> <set> <span>
  <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <boost/json.hpp> <fmt/format.h>)

# shoal_pch_owner(NAME SOURCE HEADERS…): the target whose compilation makes the set NAME. Position-independent code differs
# between libraries and programs, and g++ refuses headers that were compiled the other way: the kind of target matters.
function(shoal_pch_owner NAME KIND)
  set(source ${PROJECT_BINARY_DIR}/${NAME}.cc)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "int main() {}\n")
  endif()
  if(KIND STREQUAL "program")
    add_executable(${NAME} ${source})
  else()
    add_library(${NAME} STATIC ${source})
  endif()
  target_link_libraries(${NAME} PRIVATE fmt::fmt spdlog::spdlog Boost::json Threads::Threads)
  target_compile_options(${NAME} PRIVATE ${SHOAL_WARNINGS} -fpch-preprocess)
  target_precompile_headers(${NAME} PRIVATE ${ARGN})
  set_target_properties(${NAME} PROPERTIES
    CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/replace_output.sh;${CMAKE_CXX_COMPILER_LAUNCHER}")
endfunction()

shoal_pch_owner(shoal_pch library ${SHOAL_PCH_HEADERS})
if(SHOAL_TESTS)
  shoal_pch_owner(shoal_test_pch program ${SHOAL_PCH_HEADERS} <gmock/gmock.h> <gtest/gtest.h> <rapidcheck.h>)
  target_link_libraries(shoal_test_pch PRIVATE GTest::gmock GTest::gtest)
endif()
