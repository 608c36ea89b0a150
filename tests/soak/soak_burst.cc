// SPDX-License-Identifier: Apache-2.0
//
// A client whose server is killed during its execution, 200 times, in turns while it sleeps and
// while it polls or has just polled: how soon it knows (contract Q05: p99 under 10 ms), and that
// nothing is left of any.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/burst_host.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/session_model.h"
#include "penstock/burst/testing/asleep.h"
#include "penstock/burst/testing/client_process.h"
#include "penstock/burst/testing/service_process.h"
#include "penstock/memory/device.h"
#include "penstock/model/session.h"
#include "tests/soak/soak_main.h"

namespace penstock {
namespace {

constexpr int kKills = 200;
constexpr double kBar = 10;     // ms
constexpr int kEnough = 100;    // Kills that have a 99th percentile.
constexpr long kGrowth = 1024;  // KiB: 5 a kill

/// In milliseconds, until its client knows.
Result<double> kill_server(bool polls) {
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

/// What burst_peer executes, at no cost.
class NothingSession final : public Session {
 public:
  explicit NothingSession(DevicePtr device) : device_(std::move(device)) {}
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> given) override {
    std::vector<Tensor> out;
    const Shape& values = given.front().shape;
    for (const auto& [spec, shape] : {std::pair(&outputs_[0], values), {&outputs_[1], Shape{1}}}) {
      const auto size = byte_size(spec->type, shape);
      if (!size) return std::unexpected(size.error());
      auto storage = device_->allocate(*size);
      if (!storage) return std::unexpected(storage.error());
      std::memset((*storage)->host_bytes().data(), 0, *size);
      out.push_back({.name = spec->name,
                     .type = spec->type,
                     .shape = shape,
                     .data = StorageRegion::whole(std::move(*storage)),
                     .ready = {}});
    }
    return out;
  }
  void interrupt() override {}

 private:
  const DevicePtr device_;
  const std::vector<TensorSpec> inputs_{
      {"values", DataType::kFloat32, TensorLayout::kAny, {{1, 100'000, "n"}}},
      {"places", DataType::kInt64, TensorLayout::kAny, {Dimension::fixed(2)}}};
  const std::vector<TensorSpec> outputs_{
      {"twice", DataType::kFloat32, TensorLayout::kAny, {{1, 100'000, "n"}}},
      {"sum", DataType::kInt64, TensorLayout::kAny, {Dimension::fixed(1)}}};
};

/// A host in this process, whose clients are killed.
class Host {
 public:
  static Result<std::unique_ptr<Host>> start() {
    auto device = open_device({DeviceKind::kCpu, 0});
    if (!device) return std::unexpected(device.error());
    std::unique_ptr<Host> host(new Host);
    auto model = SessionModel::create(*device,
                                      [device = *device]() -> Result<std::shared_ptr<Session>> {
                                        return std::make_shared<NothingSession>(device);
                                      },
                                      {.name = "small", .metrics = host->metrics_});
    if (!model) return std::unexpected(model.error());
    host->model_ = *model;
    if (::mkdtemp(host->folder_.data()) == nullptr) return fail(ErrorKind::kIo, "no folder");
    auto listening = BurstHost::listen(host->socket(), {{"small", host->model_}});
    if (!listening) return std::unexpected(listening.error());
    host->host_ = std::move(*listening);
    return host;
  }
  ~Host() {
    host_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// In milliseconds, until the burst's thread has been joined and its model let go of.
  Result<double> kill_client(bool polls) {
    const auto& served = metrics_->by_status.at(0);
    const std::uint64_t before = served;
    testing::ClientProcess client(PENSTOCK_BURST_PEER, socket(), "execute", polls ? 1 : 0);
    while (served < before + 20) {
      if (client.has_ended()) return fail(ErrorKind::kDevice, "the client does not execute");
      std::this_thread::yield();
    }
    const TimePoint killed = Clock::system().now();
    client.kill();
    const Deadline deadline = Deadline::after(Clock::system(), std::chrono::seconds(20));
    while (host_->clients() > 0 || model_->holds() > 0) {
      if (deadline.passed(Clock::system())) return fail(ErrorKind::kDeadline, "its burst stays");
      std::this_thread::yield();
    }
    return std::chrono::duration<double, std::milli>(Clock::system().now() - killed).count();
  }

 private:
  Host() = default;
  std::filesystem::path socket() const { return std::filesystem::path(folder_) / "burst"; }

  std::string folder_ = (std::filesystem::temp_directory_path() / "penstock-soak-XXXXXX").string();
  const std::shared_ptr<BurstMetrics> metrics_ = std::make_shared<BurstMetrics>();
  std::shared_ptr<SessionModel> model_;
  std::unique_ptr<BurstHost> host_;
};

struct Kills {
  bool ok = false;
  std::string told;
};

/// Kills in turns an end whose other one sleeps and one whose other one polls.
template <typename Kill>
Kills kill_many(const char* what, int kills, Kill kill) {
  std::vector<double> times;
  Footprint before;
  for (int i = 0; i < kills; ++i) {
    const Result<double> time = kill(i % 2 == 1);
    if (!time) return {.told = str_format("{} {}: {}", what, i, time.error().message())};
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
  // Of a few kills the 99th percentile is the worst one, which a busy machine makes.
  const double judged = kills >= kEnough ? at(0.99) : at(0.5);
  return {.ok = judged < kBar && stays,
          .told = str_format(
              "{} killed {}, noticed after p50 {:.2f} ms, p99 {:.2f} ms, at most {:.2f} ms "
              "(bar {:.0f} ms at p99), RSS {} -> {} KiB, fds {} -> {}, threads {} -> {}",
              kills, what, at(0.5), at(0.99), times.back(), kBar, before.rss_kib, after.rss_kib,
              before.fds, after.fds, before.threads, after.threads)};
}

SoakVerdict soak(const SoakFlags& flags) {
  const int kills = std::max(2, static_cast<int>(kKills * flags.percent / 100));
  const Kills servers = kill_many("servers", kills, kill_server);
  const auto host = Host::start();
  if (!host) return {.ok = false, .told = host.error().message()};
  const Kills clients =
      kill_many("clients", kills, [&](bool polls) { return (*host)->kill_client(polls); });
  return {.ok = servers.ok && clients.ok, .told = servers.told + "; " + clients.told};
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::soak_main(
      argc, argv,
      {.name = "burst", .what = "Ends of bursts that are killed", .soak = penstock::soak});
}
