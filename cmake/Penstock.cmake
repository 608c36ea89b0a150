# SPDX-License-Identifier: Apache-2.0
include(GoogleTest)

add_library(penstock_options INTERFACE)
target_compile_options(penstock_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Werror)
if(PENSTOCK_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A unity source includes others, whose types are no less theirs for it.
  target_compile_options(penstock_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
target_include_directories(penstock_options INTERFACE ${CMAKE_SOURCE_DIR})

# Parsing the standard library and GoogleMock again in each file was more than half of a full build.
# One header for libraries (-fPIC) and one for tests (-fPIE): gcc takes a precompiled header only with
# the options that made it. The fuzz preset builds without, so that a missing #include of the core shows.
set(penstock_precompiled
    <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstdio>
    <cstring> <expected> <filesystem> <format> <fstream> <functional> <limits> <map> <memory> <mutex>
    <optional> <random> <set> <span> <string> <string_view> <thread> <utility> <vector>)
# ccache reads the header's checksum from a .sum file (CCACHE_PCH_EXTSUM): gcc does not write the same
# bytes twice, so that another clone would find nothing in the cache.
function(penstock_precompile target)
  target_precompile_headers(${target} PRIVATE ${penstock_precompiled} ${ARGN})
  string(SHA256 sum "${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_BUILD_TYPE} ${GTest_VERSION} $ENV{PENSTOCK_USERLAND} ${penstock_precompiled} ${ARGN}")
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum "${sum}\n")
endfunction()
# GStreamer's pkg-config says so, and precompiled headers need it said everywhere.
target_compile_options(penstock_options INTERFACE -pthread)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # For ccache, which must see that a precompiled header is used.
  target_compile_options(penstock_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
# Half of the time that a test takes to compile would be optimisation, and it runs once.
set(penstock_test_options -O0)
add_library(penstock_precompiled_library OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
target_link_libraries(penstock_precompiled_library PRIVATE penstock_options Threads::Threads)
penstock_precompile(penstock_precompiled_library)
add_executable(penstock_precompiled_test EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/precompiled.cc)
target_link_libraries(penstock_precompiled_test PRIVATE penstock_options Threads::Threads GTest::gmock GTest::gtest_main)
target_compile_options(penstock_precompiled_test PRIVATE ${penstock_test_options})
penstock_precompile(penstock_precompiled_test <gmock/gmock.h> <gtest/gtest.h>)

# What the standard library and the rooms' headers cost is paid once for several sources. The other presets
# compile each by itself, so that a missing #include or two meanings of a name show.
function(penstock_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PENSTOCK_UNITY} UNITY_BUILD_BATCH_SIZE 6)
endfunction()

# penstock_room(NAME SOURCES ... LINK ... [SEPARATE ...]): one room, one static library `penstock_NAME`.
# SEPARATE: sources that can't be in one unit with the others, because they mean something else by a name.
# Kernels can't either, as they include themselves once a target of the processor.
function(penstock_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;SEPARATE" ${ARGN})
  add_library(penstock_${name} STATIC ${ARG_SOURCES})
  penstock_unity(penstock_${name})
  set(separate ${ARG_SOURCES})
  list(FILTER separate INCLUDE REGEX "^kernels/")
  set_source_files_properties(${separate} ${ARG_SEPARATE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(penstock_${name} PUBLIC penstock_options Threads::Threads ${ARG_LINK})
  target_precompile_headers(penstock_${name} REUSE_FROM penstock_precompiled_library)
endfunction()

# penstock_program(TARGET): a program takes the libraries' precompiled header, which wants their -fPIC.
function(penstock_program target)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM penstock_precompiled_library)
endfunction()

# penstock_test(NAME SOURCES ... LINK ... [LABELS ...] [TIMEOUT s] [ALONE]): one GoogleTest binary. Tests
# of rooms without GStreamer carry the label `core`, which the TSan run selects. ALONE: no other test runs
# beside its, because they measure time.
function(penstock_test name)
  cmake_parse_arguments(ARG "ALONE" "TIMEOUT" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${penstock_test_options})
  target_precompile_headers(${name} REUSE_FROM penstock_precompiled_test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS core)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
                       PROPERTIES RUN_SERIAL ${ARG_ALONE} TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

# penstock_bench(NAME SOURCES ... LINK ...): a micro-benchmark beside its code.
function(penstock_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} benchmark::benchmark_main)
endfunction()
