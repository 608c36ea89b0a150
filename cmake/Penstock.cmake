# SPDX-License-Identifier: Apache-2.0
include(GoogleTest)

add_library(penstock_options INTERFACE)
target_compile_options(penstock_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Werror)
target_include_directories(penstock_options INTERFACE ${CMAKE_SOURCE_DIR})

# penstock_room(NAME SOURCES ... LINK ...): one room, one static library `penstock_NAME`.
function(penstock_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(penstock_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(penstock_${name} PUBLIC penstock_options Threads::Threads ${ARG_LINK})
endfunction()

# penstock_test(NAME SOURCES ... LINK ... [LABELS ...] [TIMEOUT s]): one GoogleTest binary. Tests of
# rooms without GStreamer carry the label `core`, which the TSan run selects.
function(penstock_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS core)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

# penstock_bench(NAME SOURCES ... LINK ...): a micro-benchmark beside its code.
function(penstock_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} benchmark::benchmark_main)
endfunction()
