// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/metrics_text.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

constexpr std::array<std::string_view, 9> kStatusNames = {"none",
                                                          "device-unavailable",
                                                          "general-failure",
                                                          "output-insufficient-size",
                                                          "invalid-argument",
                                                          "missed-deadline-transient",
                                                          "missed-deadline-persistent",
                                                          "resource-exhausted-transient",
                                                          "resource-exhausted-persistent"};

/// Upper bounds in microseconds.
constexpr std::array<std::int64_t, 14> kBounds = {100,     250,       500,       1'000,     2'500,
                                                  5'000,   10'000,    25'000,    50'000,    100'000,
                                                  250'000, 1'000'000, 5'000'000, 60'000'000};

/// As the value of a label.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = str_format("penstock_burst_{}", name);
    text_ += str_format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
  }
  template <typename Value>
  void sample(Value value, const std::string& labels = {}, std::string_view suffix = {}) {
    text_ += str_format("{}{}{} {}\n", name_, suffix,
                        labels.empty() ? std::string() : str_format("{{{}}}", labels), value);
  }
  template <typename Value>
  void one(std::string_view name, std::string_view type, std::string_view help, Value value) {
    family(name, type, help);
    sample(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

void add_models(Text& text, const std::vector<std::shared_ptr<SessionModel>>& models) {
  const auto each = [&](std::string_view name, std::string_view help, auto value) {
    text.family(name, "gauge", help);
    for (const auto& model : models) {
      text.sample(value(*model), str_format("model=\"{}\"", escaped(model->name())));
    }
  };
  each("model_loaded", "Whether the model is in memory.",
       [](const SessionModel& model) { return model.is_loaded() ? 1 : 0; });
  each("model_bursts", "Bursts that keep the model hot.",
       [](const SessionModel& model) { return model.holds(); });
  each("model_low_latency", "Whether the CPU is asked not to sleep deeply for the model.",
       [](const SessionModel& model) { return model.asks_for_latency() ? 1 : 0; });
}

void add_times(Text& text, const LatencyHistogram& times) {
  text.family("execution_seconds", "histogram",
              "From taking a request to having its result, of all answers.");
  const auto buckets = times.buckets();
  std::uint64_t total = 0;
  std::size_t next = 0;
  for (const std::int64_t bound : kBounds) {
    const Nanoseconds upper = std::chrono::microseconds(bound);
    for (; next < buckets.size() && buckets[next].upper <= upper; ++next) {
      total += buckets[next].count;
    }
    text.sample(total, str_format("le=\"{}\"", static_cast<double>(bound) / 1e6), "_bucket");
  }
  for (; next < buckets.size(); ++next) total += buckets[next].count;
  text.sample(total, "le=\"+Inf\"", "_bucket");
  text.sample(total, {}, "_count");
}

}  // namespace

std::string metrics_text(const BurstMetrics& metrics, const BurstQuota& quota,
                         const std::vector<std::shared_ptr<SessionModel>>& models) {
  Text text;
  text.one("bursts", "gauge", "Bursts that are configured now.", metrics.live_bursts.load());
  text.one("bursts_total", "counter", "Bursts that were configured.", metrics.bursts.load());
  text.one("refused_total", "counter", "Bursts that were refused.", metrics.refused_bursts.load());
  text.one("malformed_total", "counter", "Packets that were no request.", metrics.malformed.load());
  text.one("direct_total", "counter", "Requests that came by the socket.", metrics.direct.load());
  text.one("mapped_slots", "gauge", "Memories of clients that are mapped.", quota.slots());
  text.one("mapped_bytes", "gauge", "Their bytes.", quota.bytes());
  add_models(text, models);
  text.family("answers_total", "counter", "Answers, by status.");
  for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
    text.sample(metrics.by_status.at(i).load(), str_format("status=\"{}\"", kStatusNames.at(i)));
  }
  add_times(text, metrics.execution);
  return text.take();
}

}  // namespace penstock
