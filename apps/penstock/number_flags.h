// SPDX-License-Identifier: Apache-2.0
//
// Checks of flags that are numbers. CLI11's own let "nan" through, which compares with nothing.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <string>

namespace penstock {

/// A finite number in `least`..`most`.
inline CLI::Validator finite_number(double least = std::numeric_limits<double>::lowest(),
                                    double most = std::numeric_limits<double>::max()) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        const bool number = CLI::detail::lexical_cast(text, value);
        if (number && std::isfinite(value) && value >= least && value <= most) return std::string();
        return "'" + text + "' is not a number from " + CLI::detail::to_string(least) + " to " +
               CLI::detail::to_string(most);
      },
      "NUMBER");
}

/// One such number, or several with commas between.
inline CLI::Validator finite_numbers() {
  return CLI::Validator(
      [](std::string& text) {
        const CLI::Validator one = finite_number();
        for (std::string part : CLI::detail::split(text + " ", ',')) {
          CLI::detail::trim(part);
          if (std::string wrong = one(part); !wrong.empty()) return wrong;
        }
        return std::string();
      },
      "NUMBER,...");
}

}  // namespace penstock
