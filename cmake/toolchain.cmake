# Warnings, linker, compiler cache and sanitizers: what holds for every target of ours.
find_program(CCACHE ccache)
if(CCACHE)
  # Two checkouts share the cache: paths below the root are made relative. The last setting is what ccache asks for before
  # it caches files that read precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-fno-omit-frame-pointer -fstack-protector-strong)
if(SHOAL_SANITIZE)
  add_compile_options(-fsanitize=${SHOAL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SHOAL_SANITIZE})
endif()

# Own code is compiled with these; third-party headers come in as SYSTEM and are exempt.
# -Wmaybe-uninitialized stays off: g++ 12 reports it falsely inside std::optional at -O2 and above.
# -Wtsan: the thread sanitizer overlooks fences. Asio's stand beside mutexes, which it does see.
set(SHOAL_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wno-maybe-uninitialized -Werror)
if(SHOAL_SANITIZE STREQUAL "thread")
  list(APPEND SHOAL_WARNINGS -Wno-tsan)
endif()
# With precompiled headers g++ 12 takes std::string for its own code and finds overflows in it that are none (GCC bug
# 105651). The plain build keeps these warnings; the few files that it wrongly names skip the headers.
if(SHOAL_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  list(APPEND SHOAL_WARNINGS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()
