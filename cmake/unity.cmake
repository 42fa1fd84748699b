# Unity builds: one compilation takes several files of a target, so that the headers behind them are read, and the templates in
# them instantiated, once a group instead of once a file. A cold release build takes half of the processor time.
# cmake/unity.py chooses the groups; it keeps files apart whose own names meet, so nobody needs to avoid a name. A file
# with compile options or definitions of its own, or the property SHOAL_ALONE, stays alone.
#   SHOAL_UNITY=0 compiles each file by itself, as the preset dev does: a change then compiles least, and a missing #include shows.
set(SHOAL_UNITY 0 CACHE STRING "Lines of source that one compilation takes; 0: each file by itself")

# g++ takes a group for a header, whose types should not hold those of an anonymous namespace.
if(SHOAL_UNITY)
  list(APPEND SHOAL_WARNINGS -Wno-subobject-linkage)
endif()

# shoal_unity(TARGET): its files below src may be grouped.
function(shoal_unity TARGET)
  set_property(GLOBAL APPEND PROPERTY SHOAL_UNITY_TARGETS ${TARGET})
endfunction()

# shoal_group_sources(): replaces the files of those targets by their groups, when all targets and properties are known.
function(shoal_group_sources)
  find_program(SHOAL_UNITY_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
  if(NOT SHOAL_UNITY OR NOT SHOAL_UNITY_PYTHON)
    return()
  endif()
  get_property(targets GLOBAL PROPERTY SHOAL_UNITY_TARGETS)
  set(root ${PROJECT_SOURCE_DIR}/src)
  set(request "")
  foreach(target ${targets})
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    set(grouped "")
    set(alone "")
    foreach(source ${sources})
      set(own_options "")
      foreach(property COMPILE_DEFINITIONS COMPILE_OPTIONS COMPILE_FLAGS SKIP_PRECOMPILE_HEADERS SHOAL_ALONE)
        get_source_file_property(value ${source} DIRECTORY ${folder} ${property})
        if(value)
          set(own_options ${property})
        endif()
      endforeach()
      if(own_options OR NOT source MATCHES "^${root}/.*\\.cc$")
        list(APPEND alone ${source})
      else()
        string(REPLACE "${root}/" "" source ${source})
        list(APPEND grouped ${source})
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY SHOAL_ALONE_${target} ${alone})
    string(APPEND request "${target};${grouped}\n")
  endforeach()

  # A name that is written into a file may part a group: configured again, which takes a second.
  file(GLOB_RECURSE all ${root}/*.cc ${root}/*.h)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${all}
    ${PROJECT_SOURCE_DIR}/cmake/unity.py)
  file(WRITE ${PROJECT_BINARY_DIR}/unity/request "${request}")
  execute_process(COMMAND ${SHOAL_UNITY_PYTHON} -B ${PROJECT_SOURCE_DIR}/cmake/unity.py ${PROJECT_BINARY_DIR}/unity
    ${SHOAL_UNITY} ${root} INPUT_FILE ${PROJECT_BINARY_DIR}/unity/request OUTPUT_VARIABLE answer
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "|" answer "${answer}")
  string(REPLACE "\n" ";" answer "${answer}")
  foreach(line ${answer})
    string(REPLACE "|" ";" compiled "${line}")
    list(POP_FRONT compiled target)
    get_property(alone GLOBAL PROPERTY SHOAL_ALONE_${target})
    set_property(TARGET ${target} PROPERTY SOURCES ${compiled} ${alone})
  endforeach()
endfunction()
