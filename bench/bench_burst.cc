// SPDX-License-Identifier: Apache-2.0
//
// bench burst: an execution in another process, there and back, beside the barest means that move
// as many bytes; tensors of several sizes by pool; a real model through a burst and in this
// process; and how soon a killed server is noticed. In turns; a ratio is the median of the rounds'
// ratios of medians.
#include <pthread.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/burst_packaged_peers.h"
#include "bench/burst_peers.h"
#include "bench/burst_run.h"
#include "bench/report.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/burst_session.h"
#include "penstock/model/manifest.h"

namespace penstock::bench {
namespace {

struct Flags {
  std::string json = "build/bench/burst.json";
  std::string model = "nanodet";
  std::string models;
  std::string library;
  std::string only;
  int rounds = 9;
  int trips = 2000;
  int inferences = 12;
};

constexpr Nanoseconds kPolling = kMaxPollWindow;
constexpr std::size_t kSmall = 2048;

double percentile(std::vector<double> values, double quantile) {
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(std::ceil(quantile * double(values.size())));
  return values.at(std::clamp<std::size_t>(at, 1, values.size()) - 1);
}

/// A contender's medians, one a round, and all of its times.
struct Times {
  std::vector<double> medians;
  std::vector<double> all;
};

Result<void> add_round(Result<std::vector<double>> round, Times& times) {
  if (!round) return std::unexpected(std::move(round).error());
  times.medians.push_back(median(*round));
  times.all.insert(times.all.end(), round->begin(), round->end());
  return {};
}

Result<void> measure(Asker& asker, int trips, Times& times) {
  return add_round(time_round_trips(asker, trips), times);
}

void add_row(BenchReport& report, const std::string& name, const Times& ours, const char* peer_name,
             const Times& peer, double bar) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.medians.size(); ++i) {
    ratios.push_back(peer.medians[i] / ours.medians[i]);
  }
  report.add({.name = name,
              .unit = "us",
              .higher_is_better = false,
              .ours = median(ours.medians) / 1e3,
              .peer_name = peer_name,
              .peer = median(peer.medians) / 1e3,
              .ratio = median(ratios),
              .bar = bar});
  std::fprintf(stderr, "%s: ours p50 %.2f us, p99 %.2f us; %s p50 %.2f us, p99 %.2f us\n",
               name.c_str(), median(ours.medians) / 1e3, percentile(ours.all, 0.99) / 1e3,
               peer_name, median(peer.medians) / 1e3, percentile(peer.all, 0.99) / 1e3);
}

/// Time of an execution's first ask, which shows its memory and faults nothing in later.
Result<double> first_trip(Asker& asker) {
  const TimePoint from = Clock::system().now();
  PENSTOCK_TRY(asker.ask());
  return double((Clock::system().now() - from).count());
}

Result<void> measure_trips(const Flags& flags, BenchReport& report) {
  leave_core();
  auto boost_mq = PackagedPeer::start("boost-mq");
  if (!boost_mq) return std::unexpected(boost_mq.error());
  auto grpc = PackagedPeer::start("grpc");
  if (!grpc) return std::unexpected(grpc.error());
  // Forked before this process has threads.
  auto ping_pong = make_ping_pong();
  if (!ping_pong) return std::unexpected(ping_pong.error());
  auto uds = make_uds();
  if (!uds) return std::unexpected(uds.error());
  auto server = BurstServerProcess::start();
  if (!server) return std::unexpected(server.error());
  const auto& socket = (*server)->socket();
  auto burst = make_burst(socket, kSmall, Nanoseconds(0));
  if (!burst) return std::unexpected(burst.error());
  auto middle = make_burst(socket, std::size_t{2} << 20, Nanoseconds(0));
  if (!middle) return std::unexpected(middle.error());
  auto large = make_burst(socket, std::size_t{24} << 20, Nanoseconds(0));
  if (!large) return std::unexpected(large.error());
  const auto first = first_trip(**large);
  if (!first) return std::unexpected(first.error());

  stay_on_core(0);
  Times ours, bare, sockets, queues, calls, two, twenty_four;
  for (int round = 0; round < flags.rounds; ++round) {
    PENSTOCK_TRY(measure(**burst, flags.trips, ours));
    PENSTOCK_TRY(measure(**ping_pong, flags.trips, bare));
    PENSTOCK_TRY(measure(**uds, flags.trips, sockets));
    PENSTOCK_TRY(add_round((*boost_mq)->measure(flags.trips), queues));
    PENSTOCK_TRY(add_round((*grpc)->measure(flags.trips), calls));
    PENSTOCK_TRY(measure(**middle, flags.trips, two));
    PENSTOCK_TRY(measure(**large, flags.trips, twenty_four));
  }
  add_row(report, "execution, futex", ours, "ping-pong", bare, 0.87);
  add_row(report, "execution, futex", ours, "uds", sockets, 1.2);
  add_row(report, "execution, futex", ours, "boost-mq", queues, 2);
  add_row(report, "execution, futex", ours, "grpc", calls, 8);
  for (const auto& [name, times] : {std::pair{"2 MB by pool, more than 2 KB", &two},
                                    std::pair{"24 MB by pool, more than 2 KB", &twenty_four}}) {
    std::vector<double> added;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.medians.size(); ++i) {
      added.push_back(std::max(times->medians[i] - ours.medians[i], 1.0));
      ratios.push_back(3 * bare.medians[i] / added.back());
    }
    report.add({.name = name,
                .unit = "us",
                .higher_is_better = false,
                .ours = median(added) / 1e3,
                .peer_name = "allowed",
                .peer = 3 * median(bare.medians) / 1e3,
                .ratio = median(ratios),
                .bar = 1});
  }
  report.add({.name = "24 MB by pool, the first time",
              .unit = "us",
              .higher_is_better = false,
              .ours = *first / 1e3,
              .peer_name = "later ones",
              .peer = median(twenty_four.medians) / 1e3,
              .ratio = median(twenty_four.medians) / *first,
              .bar = 0});
  return {};
}

Result<void> measure_polling(const Flags& flags, BenchReport& report) {
  leave_core();
  auto grpc = PackagedPeer::start("grpc");
  if (!grpc) return std::unexpected(grpc.error());
  auto server = BurstServerProcess::start();
  if (!server) return std::unexpected(server.error());
  auto burst = make_burst((*server)->socket(), kSmall, kPolling);
  if (!burst) return std::unexpected(burst.error());
  stay_on_core(0);
  Times ours, spin, calls, samples;
  for (int round = 0; round < flags.rounds; ++round) {
    PENSTOCK_TRY(measure(**burst, flags.trips, ours));
    auto spinning = make_spin_ping_pong();  // Its thread would keep a core busy in ours.
    if (!spinning) return std::unexpected(spinning.error());
    PENSTOCK_TRY(measure(**spinning, flags.trips, spin));
    spinning->reset();
    PENSTOCK_TRY(add_round((*grpc)->measure(flags.trips), calls));
    // Its answering process polls all the time, too.
    leave_core();
    auto iceoryx = PackagedPeer::start("iceoryx");
    stay_on_core(0);
    if (!iceoryx) return std::unexpected(iceoryx.error());
    PENSTOCK_TRY(add_round((*iceoryx)->measure(flags.trips), samples));
  }
  add_row(report, "execution, polling", ours, "spin-ping-pong", spin, 0.25);
  add_row(report, "execution, polling", ours, "iceoryx", samples, 1.5);
  add_row(report, "execution, polling", ours, "grpc", calls, 25);
  return {};
}

Nanoseconds own_cpu() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

Result<Tensor> filled_input(Device& device, const TensorSpec& spec) {
  Tensor tensor{.name = spec.name, .type = spec.type, .shape = {}, .data = {}, .ready = {}};
  for (const Dimension& dim : spec.dims) tensor.shape.push_back(dim.minimum);
  const auto size = byte_size(spec.type, tensor.shape);
  if (!size) return std::unexpected(size.error());
  auto storage = device.allocate(*size);
  if (!storage) return std::unexpected(storage.error());
  std::memset((*storage)->host_bytes().data(), 0, *size);
  tensor.data = StorageRegion::whole(std::move(*storage));
  return tensor;
}

/// CPU time of an inference through a burst, of both processes, beside the same in this one.
Result<void> measure_model(const Flags& flags, BenchReport& report) {
  leave_core();
  const auto path = find_model(flags.model, models_folder(flags.models));
  if (!path) return std::unexpected(path.error());
  const auto manifest = load_manifest(*path);
  if (!manifest) return std::unexpected(manifest.error());
  auto server = BurstServerProcess::start(*path, flags.library);
  if (!server) return std::unexpected(server.error());
  auto device = open_device({DeviceKind::kCpu, 0}, {.shareable = true});
  if (!device) return std::unexpected(device.error());
  auto inside = open_session(*device, *manifest, {.engine_library = flags.library});
  if (!inside) return std::unexpected(inside.error());
  auto through = BurstSession::connect({.path = (*server)->socket(), .model = "prepared"}, *device,
                                       {.artefact_hash = manifest->artefact_sha256}, {});
  if (!through) return std::unexpected(through.error());
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : (*inside)->inputs()) {
    auto input = filled_input(**device, spec);
    if (!input) return std::unexpected(input.error());
    inputs.push_back(std::move(*input));
  }
  const auto cpu_of = [&](Session& session) -> Result<double> {
    const Nanoseconds from = own_cpu() + (*server)->cpu();
    for (int i = 0; i < flags.inferences; ++i) PENSTOCK_TRY(session.run(inputs));
    const Nanoseconds used = own_cpu() + (*server)->cpu() - from;
    return double(used.count()) / 1e6 / flags.inferences;
  };
  std::vector<double> ours, peer, ratios;
  for (int round = -1; round < flags.rounds; ++round) {
    // The order is swapped each time, and the first round is to warm up.
    auto one = cpu_of(round % 2 == 0 ? **through : **inside);
    if (!one) return std::unexpected(one.error());
    auto other = cpu_of(round % 2 == 0 ? **inside : **through);
    if (!other) return std::unexpected(other.error());
    if (round < 0) continue;
    ours.push_back(round % 2 == 0 ? *one : *other);
    peer.push_back(round % 2 == 0 ? *other : *one);
    ratios.push_back(peer.back() / ours.back());
  }
  report.add({.name = flags.model + " through a burst, CPU time of both processes",
              .unit = "ms CPU/run",
              .higher_is_better = false,
              .ours = median(ours),
              .peer_name = "in-process",
              .peer = median(peer),
              .ratio = median(ratios),
              .bar = 0.99});
  std::uint64_t staged = 0;
  for (const auto& row : (*device)->ledger().rows()) {
    if (row.site == "burst/staging") staged += row.bytes;
  }
  std::fprintf(stderr, "%s: %llu bytes of inputs copied on the way to the server\n",
               flags.model.c_str(), static_cast<unsigned long long>(staged));
  return {};
}

int run_all(const Flags& flags) {
  BenchReport report("burst");
  using Step = Result<void> (*)(const Flags&, BenchReport&);
  for (const auto& [name, step] : {std::pair<const char*, Step>{"trips", measure_trips},
                                   {"polling", measure_polling},
                                   {"model", measure_model}}) {
    if (!flags.only.empty() && flags.only != name) continue;
    if (const auto done = step(flags, report); !done) {
      std::fprintf(stderr, "bench burst: %s\n", done.error().message().c_str());
      return 1;
    }
  }
  return report.finish(flags.json) ? 0 : 1;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0) return serve_from_arguments(argc, argv);
  CLI::App app("Executions in another process", "bench_burst");
  Flags flags;
  app.add_option("--json", flags.json, "Where the results go")->capture_default_str();
  app.add_option("--model", flags.model, "Model name or manifest")->capture_default_str();
  app.add_option("--models", flags.models, "Folder of prepared models");
  app.add_option("--engine-library", flags.library, "The ONNX Runtime library");
  app.add_option("--only", flags.only, "One part: trips, polling or model")
      ->check(CLI::IsMember({"trips", "polling", "model"}));
  app.add_option("--rounds", flags.rounds, "Rounds")->check(CLI::Range(1, 1000));
  app.add_option("--trips", flags.trips, "Round trips a measurement")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--inferences", flags.inferences, "Model runs a measurement")
      ->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  return run_all(flags);
}
