# shoal_room(NAME DEPS rooms… LIBS libraries…)
#   Makes the static library shoal_NAME of the *.cc below the calling folder, and, from *_test.cc, one test program
#   NAME_test whose cases ctest runs one by one. *_bench.cc becomes NAME_bench. A file that needs instruction sets of
#   its own goes through Highway's run-time dispatch, so no room sets -m flags.
#   DEPS may name only rooms of an earlier rank; script/lint checks the includes.
include(GoogleTest)

# shoal_precompiled(TARGET SET): TARGET reads the headers of SET from their compiled form, if there is one.
function(shoal_precompiled TARGET SET)
  if(SHOAL_PCH)
    target_precompile_headers(${TARGET} REUSE_FROM ${SET})
    target_compile_options(${TARGET} PRIVATE -fpch-preprocess)
  endif()
endfunction()

function(shoal_room NAME)
  cmake_parse_arguments(ROOM "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz|main)\\.cc$")

  set(links "")
  foreach(dep ${ROOM_DEPS})
    list(APPEND links shoal_${dep})
  endforeach()

  if(sources)
    add_library(shoal_${NAME} STATIC ${sources})
    set(kind PUBLIC)
  else()
    add_library(shoal_${NAME} INTERFACE)
    set(kind INTERFACE)
  endif()
  target_include_directories(shoal_${NAME} ${kind} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(shoal_${NAME} ${kind} ${links} ${ROOM_LIBS} Threads::Threads)
  if(sources)
    target_compile_options(shoal_${NAME} PRIVATE ${SHOAL_WARNINGS})
    shoal_precompiled(shoal_${NAME} shoal_pch)
    shoal_unity(shoal_${NAME})
  endif()

  if(SHOAL_TESTS AND tests)
    add_executable(${NAME}_test ${tests})
    target_link_libraries(${NAME}_test PRIVATE shoal_${NAME} GTest::gmock_main GTest::gtest ${RAPIDCHECK_LIBRARY})
    target_compile_options(${NAME}_test PRIVATE ${SHOAL_WARNINGS})
    shoal_precompiled(${NAME}_test shoal_test_pch)
    shoal_unity(${NAME}_test)
    gtest_discover_tests(${NAME}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 120 LABELS ${NAME})
  endif()
  if(SHOAL_BENCHES AND benches)
    add_executable(${NAME}_bench ${benches})
    target_link_libraries(${NAME}_bench PRIVATE shoal_${NAME} benchmark::benchmark_main)
  endif()
endfunction()
