// SPDX-License-Identifier: Apache-2.0
//
// soak schedule: a million random steps of the executor beside its reference scheduler, which must
// never differ (contract B05).
#include <algorithm>
#include <cstdint>
#include <random>

#include "penstock/base/str_format.h"
#include "penstock/exec/test_schedule.h"
#include "tests/soak/soak_main.h"

namespace penstock {
namespace {

constexpr std::uint64_t kSteps = 1'000'000;
/// Steps with one executor; it keeps a log.
constexpr std::uint64_t kStepsOfARound = 20'000;
constexpr int kMostBatch = 5;

struct Round {
  std::uint64_t number = 0;
  std::uint64_t steps = 0;
  std::uint64_t batches = 0;
};

/// Empty, or what differed.
std::string compare(const SoakFlags& flags, Round& round) {
  std::seed_seq seeds{std::uint64_t{flags.seed}, round.number};
  std::mt19937_64 random(seeds);
  const int batch_size = 1 + static_cast<int>(random() % kMostBatch);
  testing::RandomSteps steps(random(), batch_size);
  for (std::uint64_t i = 0; i < round.steps; ++i) {
    steps.step();
    if (steps.difference().empty()) continue;
    return str_format("round {}, batch size {}, step {}: {} (repeat with --seed {} --first {})",
                      round.number, batch_size, i, steps.difference(), flags.seed, round.number);
  }
  steps.finish();
  round.batches = steps.batches();
  if (steps.difference().empty()) return {};
  return str_format("round {}, batch size {}, at its end: {} (repeat with --seed {} --first {})",
                    round.number, batch_size, steps.difference(), flags.seed, round.number);
}

SoakVerdict soak(const SoakFlags& flags) {
  const auto steps = static_cast<std::uint64_t>(double(kSteps) * flags.percent / 100);
  const std::uint64_t rounds = std::max<std::uint64_t>(1, steps / kStepsOfARound);
  std::uint64_t taken = 0, batches = 0;
  for (std::uint64_t n = flags.first; n < rounds; ++n) {
    Round round{.number = n, .steps = std::min(kStepsOfARound, std::max<std::uint64_t>(steps, 1))};
    const std::string difference = compare(flags, round);
    if (!difference.empty()) return {.ok = false, .told = difference};
    taken += round.steps;
    batches += round.batches;
  }
  return {.ok = batches > 0,
          .told = str_format("{} steps in {} rounds, {} batches, none differs from the reference",
                             taken, rounds - std::min(rounds, flags.first), batches)};
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::soak_main(argc, argv,
                             {.name = "schedule",
                              .what = "A million random steps of the executor and its reference",
                              .soak = penstock::soak,
                              .parts = "rounds"});
}
