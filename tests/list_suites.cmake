# Run after a test program is linked: writes to OUTPUT one ctest for each of the program's suites, or for each case of them
# (APART). Where every case of it is skipped, so is a ctest. The whole output of a process is kept: the last case that it names
# is the one that crashed, or took too long.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  file(REMOVE ${PROGRAM})  # so that the next build lists them again
  message(FATAL_ERROR "${PROGRAM} cannot list its tests: ${result}\n${listed}")
endif()
string(REGEX REPLACE " +#[^\n]*" "" listed "${listed}")
string(REPLACE "\n" ";" listed "${listed}")

# What a summary ends with; where a case has failed, it goes on.
set(all_skipped "[[]  PASSED  []] 0 tests[.][^[]*([[]  SKIPPED []][^[]*)+$")
set(text "")
function(add_ctest name filter)
  string(APPEND text "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES WORKING_DIRECTORY [=[${FOLDER}]=]\n"
    "  SKIP_REGULAR_EXPRESSION [=[${all_skipped}]=] \${properties})\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()
foreach(line ${listed})
  if(line MATCHES "^([^ ]+)[.]$")
    set(suite ${CMAKE_MATCH_1})
    if(NOT APART)
      add_ctest(${suite} ${suite}.*)
    endif()
  elseif(line MATCHES "^  ([^ ]+)$" AND APART)
    add_ctest(${suite}.${CMAKE_MATCH_1} ${suite}.${CMAKE_MATCH_1})
  endif()
endforeach()
if(text STREQUAL "")
  file(REMOVE ${PROGRAM})
  message(FATAL_ERROR "${PROGRAM} has no tests")
endif()
file(WRITE ${OUTPUT} "${text}")
