# What benchmarks do is held to exact counts, which no other program on the machine changes: ctest -R benchmark.exact.
# The target benchmark_update stores new counts in exact/; the commit says why. The target benchmark_history measures the
# same benchmarks and appends a line to history.jsonl.
if(TANDEM_WITH_SIM)
  find_package(SimGrid REQUIRED)
endif()

# The syntax of --benchmark_min_time.
set(one_iteration 0)
set(tenth_of_a_second 0.1)
if(benchmark_VERSION VERSION_GREATER_EQUAL 1.8)
  set(one_iteration 1x)
  set(tenth_of_a_second 0.1s)
endif()

add_executable(exact_counts exact_counts.cc benchmark_program.cc)
tandem_compile_options(exact_counts)
target_link_libraries(exact_counts PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
target_compile_definitions(exact_counts PRIVATE
  TANDEM_BENCHMARK_ONE_ITERATION="--benchmark_min_time=${one_iteration}"
  TANDEM_BENCHMARK_TENTH_OF_A_SECOND="--benchmark_min_time=${tenth_of_a_second}"
  TANDEM_BENCHMARK_SANITIZER="${TANDEM_SANITIZE}"
  TANDEM_BENCHMARK_UPDATE="cmake --build ${PROJECT_BINARY_DIR} --target benchmark_update")

add_custom_target(benchmark_update)
add_custom_target(benchmark_history)
set(history exact_counts history ${CMAKE_CURRENT_SOURCE_DIR}/history.jsonl ${PROJECT_SOURCE_DIR})

# A program that includes exact_counters.h, and its counts: exact/<set>.json.
function(tandem_exact_benchmarks set program)
  target_sources(${program} PRIVATE exact_counters.cc heap_allocations.cc)
  # Allocations are compared only within one of these.
  set(build "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS}")
  string(STRIP "${build}" build)
  set_property(SOURCE exact_counters.cc PROPERTY COMPILE_DEFINITIONS
    TANDEM_BENCHMARK_BUILD="${build}, SimGrid ${SimGrid_VERSION}, fmt ${fmt_VERSION}, Google Benchmark ${benchmark_VERSION}")
  set(stored ${CMAKE_CURRENT_SOURCE_DIR}/exact/${set}.json)
  add_test(NAME benchmark.exact.${set} COMMAND exact_counts check ${stored} $<TARGET_FILE:${program}>)
  set_tests_properties(benchmark.exact.${set} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${TANDEM_TEST_TIMEOUT})
  add_custom_command(TARGET benchmark_update POST_BUILD COMMAND exact_counts update ${stored} $<TARGET_FILE:${program}>)
  add_dependencies(benchmark_update ${program})
  add_dependencies(benchmark_history ${program})
  set(history ${history} ${stored} $<TARGET_FILE:${program}> PARENT_SCOPE)
endfunction()

if(TARGET tandem_sim_benchmarks)
  tandem_exact_benchmarks(sim tandem_sim_benchmarks)
  set_tests_properties(benchmark.exact.sim PROPERTIES COST 40)
endif()
tandem_exact_benchmarks(engine tandem_engine_benchmarks)
tandem_exact_benchmarks(strategies tandem_strategy_benchmarks)
add_dependencies(benchmark_update exact_counts)
add_dependencies(benchmark_history exact_counts)
add_custom_command(TARGET benchmark_history POST_BUILD COMMAND ${history} USES_TERMINAL)

# The comparison itself, on two benchmarks that take no time.
add_executable(exact_counts_sample exact_counts_sample.cc)
tandem_compile_options(exact_counts_sample)
target_link_libraries(exact_counts_sample PRIVATE benchmark::benchmark benchmark::benchmark_main)
add_test(NAME benchmark.exact_counts
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/exact_counts_test.sh $<TARGET_FILE:exact_counts> $<TARGET_FILE:exact_counts_sample>)
set_tests_properties(benchmark.exact_counts PROPERTIES SKIP_RETURN_CODE 77)
