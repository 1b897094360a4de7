find_package(benchmark REQUIRED)
add_executable(tandem_sim_benchmarks ${CMAKE_CURRENT_LIST_DIR}/sim_benchmark.cc
  ${CMAKE_CURRENT_LIST_DIR}/blame_benchmark.cc ${CMAKE_CURRENT_LIST_DIR}/sim_step_benchmark.cc ${CMAKE_CURRENT_LIST_DIR}/sweep_benchmark.cc
  ${CMAKE_CURRENT_LIST_DIR}/collective_benchmark.cc ${CMAKE_CURRENT_LIST_DIR}/route_benchmark.cc)
tandem_compile_options(tandem_sim_benchmarks)
target_compile_definitions(tandem_sim_benchmarks PRIVATE TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_link_libraries(tandem_sim_benchmarks PRIVATE tandem_engine_sim tandem_scenarios fmt::fmt benchmark::benchmark_main)
