// SPDX-License-Identifier: Apache-2.0
//
// A client whose server is killed during its execution, 200 times, in turns while it sleeps and
// while it polls or has just polled: how soon it knows (contract Q05: p99 under 10 ms), and that
// nothing is left of any.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/testing/asleep.h"
#include "penstock/burst/testing/service_process.h"
#include "tests/soak/soak_main.h"

namespace penstock {
namespace {

constexpr int kKills = 200;
constexpr double kBar = 10;     // ms
constexpr long kGrowth = 1024;  // KiB: 5 a kill

Result<double> kill_once(bool polls) {
  const auto service = testing::ServiceProcess::start(PENSTOCK_BURST_SERVICE);
  if (!service) return std::unexpected(service.error());
  const auto model = RemoteModel::connect((*service)->socket(), "stuck");
  if (!model) return std::unexpected(model.error());
  auto client =
      BurstClient::create(*model, {.poll_window = polls ? kMaxPollWindow : Nanoseconds(0)});
  if (!client) return std::unexpected(client.error());
  auto in = SharedFile::create(16, MapAccess::kRead);
  auto out = SharedFile::create(16, MapAccess::kReadWrite);
  if (!in || !out) return fail(ErrorKind::kExhausted, "no memory");
  const BurstClient::Execution execution{
      .inputs = {{.memory = *in, .length = 16}},
      .outputs = {{.memory = *out, .length = 16}},
      .deadline = Deadline::after(Clock::system(), std::chrono::seconds(20))};
  testing::Sleeper executing([&] {
    auto done = (*client)->execute(execution);
    return std::pair(std::move(done), Clock::system().now());
  });
  if ((*service)->hear() != 'x') return fail(ErrorKind::kDevice, "the service does not execute");
  if (!polls) executing.await_asleep();
  const TimePoint killed = Clock::system().now();
  (*service)->kill();
  const auto [done, noticed] = executing.join();
  if (done || done.error().fault != BurstFault::kGone || !done.error().was_sent) {
    return fail(ErrorKind::kCorrupt, "it was not told that the server is gone");
  }
  return std::chrono::duration<double, std::milli>(noticed - killed).count();
}

SoakVerdict soak(const SoakFlags& flags) {
  const int kills = std::max(2, static_cast<int>(kKills * flags.percent / 100));
  std::vector<double> times;
  Footprint before;
  for (int i = 0; i < kills; ++i) {
    const auto time = kill_once(i % 2 == 1);
    if (!time) return {.ok = false, .told = str_format("kill {}: {}", i, time.error().message())};
    times.push_back(*time);
    if (i == 1) before = footprint();
  }
  const Footprint after = footprint();
  std::ranges::sort(times);
  const auto at = [&](double quantile) {
    return times.at(static_cast<std::size_t>(std::ceil(quantile * double(kills))) - 1);
  };
  const bool stays = after.fds == before.fds && after.threads == before.threads &&
                     after.rss_kib - before.rss_kib < kGrowth;
  return {
      .ok = at(0.99) < kBar && stays,
      .told = str_format("{} kills, told after p50 {:.2f} ms, p99 {:.2f} ms, at most {:.2f} ms "
                         "(bar {:.0f} ms at p99); RSS {} -> {} KiB, fds {} -> {}, threads {} -> {}",
                         kills, at(0.5), at(0.99), times.back(), kBar, before.rss_kib,
                         after.rss_kib, before.fds, after.fds, before.threads, after.threads)};
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::soak_main(
      argc, argv,
      {.name = "burst", .what = "Servers of bursts that are killed", .soak = penstock::soak});
}
