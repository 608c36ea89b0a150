// SPDX-License-Identifier: Apache-2.0
//
// What the soak tests' programs have in common: their flags, and their two lines.
//
//   int main(int argc, char** argv) {
//     return penstock::soak_main(argc, argv, {.name = "frames", .what = "...", .soak = soak});
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "penstock/base/str_format.h"
#include "tests/soak/footprint.h"

namespace penstock {

struct SoakFlags {
  double percent = 100;    ///< Of the whole test.
  std::uint32_t seed = 0;  ///< Of everything that is random in it.
  std::uint64_t first = 0;
};

struct SoakVerdict {
  bool ok = false;
  std::string told;  ///< What came of it, for docs/soak.md.
};

struct SoakProgram {
  const char* name;
  const char* what;
  std::function<SoakVerdict(const SoakFlags&)> soak;
  /// Of tests that can begin at a later part of the same seed: what SoakFlags::first counts.
  const char* parts = nullptr;
};

/// Prints the seed, runs, and ends in a line for docs/soak.md.
inline int soak_main(int argc, char** argv, const SoakProgram& program) {
  CLI::App app(program.what, std::string("soak_") + program.name);
  SoakFlags flags;
  std::optional<std::uint32_t> seed;
  app.add_option("--percent", flags.percent, "How much of it to run")
      ->check(CLI::Range(0.01, 1000.0));
  app.add_option("--seed", seed, "Repeat an earlier run");
  if (program.parts != nullptr) {
    app.add_option("--first", flags.first, str_format("Leave out the {} before it", program.parts));
  }
  CLI11_PARSE(app, argc, argv);
  flags.seed = seed ? *seed : std::random_device()();
  std::printf("soak %s: seed %u\n", program.name, flags.seed);
  std::fflush(stdout);
  const SoakVerdict verdict = program.soak(flags);
  std::printf("| %s | %s | %s: %s, seed %u |\n", today().c_str(), program.name,
              verdict.ok ? "ok" : "FAILED", verdict.told.c_str(), flags.seed);
  return verdict.ok ? 0 : 1;
}

}  // namespace penstock
