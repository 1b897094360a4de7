#include "tests/conformance/tf/results_of_workers.h"

#include <exception>
#include <optional>

#include "engine/base/bytes.h"
#include "strategies/base/errors.h"
#include "strategies/servers/serving_worker.h"

namespace tandem {
namespace {

// How a run ended in one process, and what the workers came to that it has.
struct Share {
  std::exception_ptr error{};
  std::vector<std::optional<Json>> results{};
};

void put_share_error(ByteWriter& bytes, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    put_error(bytes, known);
  } catch (...) {
    put_error(bytes, RuntimeError("an exception of unknown type"));
  }
}

std::string text_of(const Share& share) {
  ByteWriter bytes;
  bytes.put(share.error != nullptr);
  if (share.error) put_share_error(bytes, share.error);
  Json results = Json::array();  // pairs of a worker's index and its result
  for (std::size_t worker = 0; worker < share.results.size(); ++worker) {
    if (share.results[worker]) results.push_back({worker, *share.results[worker]});
  }
  const std::vector<std::uint8_t> packed = Json::to_cbor(results);
  bytes.put_text(std::string(packed.begin(), packed.end()));
  return bytes.take();
}

std::exception_ptr error_in(ByteReader& bytes) {
  if (!bytes.get<bool>()) return nullptr;
  try {
    throw_error(bytes);
  } catch (...) {
    return std::current_exception();
  }
}

bool has_lost_its_type(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RuntimeError&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Throws what the shares have for an error. Processes learn of the failures of others without the types of the
// strategies' API, so those that have one come first.
std::vector<Json> joined(const std::vector<std::string>& shares, std::size_t workers) {
  std::exception_ptr error;
  std::vector<Json> results(workers);
  for (const std::string& share : shares) {
    ByteReader bytes(share);
    const std::exception_ptr of_share = error_in(bytes);
    if (of_share && (!error || (has_lost_its_type(error) && !has_lost_its_type(of_share)))) error = of_share;
    for (const Json& pair : Json::from_cbor(bytes.get_text())) results.at(pair[0].get<std::size_t>()) = pair[1];
  }
  if (error) std::rethrow_exception(error);
  return results;
}

}  // namespace

std::vector<Json> results_of_workers(EngineOptions options, std::string_view engine,
                                     const CaseWorld::Program& program) {
  LaunchedJob* const job = engine_info(engine).join == nullptr ? nullptr : engine_info(engine).join();
  Share share{.error = nullptr, .results = std::vector<std::optional<Json>>(options.workers.size())};
  try {
    open_engine(engine, std::move(options))->run([&](Worker& worker) {
      share.results[static_cast<std::size_t>(worker.index())] = program(worker);
    });
  } catch (...) {
    if (job == nullptr) throw;
    share.error = std::current_exception();
  }
  if (job != nullptr) return joined(job->gather(text_of(share)), share.results.size());
  std::vector<Json> results;
  for (std::optional<Json>& result : share.results) results.push_back(std::move(result).value());
  return results;
}

}  // namespace tandem
