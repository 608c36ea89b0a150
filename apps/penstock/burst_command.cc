// SPDX-License-Identifier: Apache-2.0
//
// penstock burst serve: prepared models for other processes, by a Unix socket (docs/burst.md).
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/engine_flags.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "apps/penstock/number_flags.h"
#include "apps/penstock/stop_signals.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/base/usable_cores.h"
#include "penstock/burst/burst_host.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/metrics_text.h"
#include "penstock/burst/session_model.h"
#include "penstock/pipeline/output_files.h"

namespace penstock {
namespace {

/// Descriptors that a client may need at once: its socket and process, and one message's files.
constexpr std::size_t kFilesOfAClient = 4 + FdSocket::kMaxFiles;
/// What the program has open besides, with room for libraries.
constexpr std::size_t kOwnFiles = 128;
/// A process has room for some 65000 mappings (vm.max_map_count); most stay for the engine.
constexpr std::size_t kMostSlots = 16384;

struct ServeFlags {
  std::vector<std::string> models_to_serve;
  std::string socket, models, metrics;
  EngineFlags engine;
  int threads = 0;
  std::size_t clients = 64;
  double idle_seconds = 0;
  std::size_t memory_mib = 4096;
};

struct Named {
  std::string name, model;
};

/// MODEL, or NAME=MODEL where the clients' name is another than the model's own.
Result<Named> named_by(const std::string& flag) {
  const std::size_t equals = flag.find('=');
  if (equals == std::string::npos) return Named{.name = {}, .model = flag};
  Named named{.name = flag.substr(0, equals), .model = flag.substr(equals + 1)};
  if (!named.name.empty() && !named.model.empty() && named.name.size() <= kMaxModelName) {
    return named;
  }
  return fail(
      ErrorKind::kInvalidArgument,
      str_format("--model '{}': NAME=MODEL has a name of 1 to {} bytes", flag, kMaxModelName));
}

Result<void> make_room_for_files(std::size_t clients) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const rlim_t wanted = kOwnFiles + clients * kFilesOfAClient;
  if (limit.rlim_cur >= wanted) return {};
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  if (limit.rlim_cur >= wanted && ::setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  return fail(ErrorKind::kExhausted,
              str_format("{} clients may need {} open files, and this process may have {} (ulimit "
                         "-n); raise that, or lower --max-clients",
                         clients, wanted, before));
}

class Service {
 public:
  explicit Service(const ServeFlags& flags) : flags_(flags) {}

  Result<void> load() {
    auto device = open_device(DeviceId{});
    if (!device) return std::unexpected(std::move(device).error());
    for (const std::string& flag : flags_.models_to_serve) {
      if (auto loaded = load_one(*device, flag); !loaded) return loaded;
    }
    return {};
  }

  /// Until a signal comes.
  int serve() {
    auto signals = StopSignals::install();
    if (!signals) return report(signals.error());
    BurstHost::Models models;
    for (const auto& model : models_) models.emplace(model->name(), model);
    auto host = BurstHost::listen(flags_.socket, std::move(models),
                                  {.max_clients = flags_.clients,
                                   .on_tick = [this] { look_round(); },
                                   .on_overtime = [this] { interrupt(); },
                                   .metrics = metrics_});
    if (!host) return report(host.error());
    for (const auto& model : models_) {
      say(str_format("{} is served at {}", model->name(), flags_.socket));
    }
    std::fflush(stdout);
    pollfd wait{.fd = signals->fd(), .events = POLLIN, .revents = 0};
    while (::poll(&wait, 1, -1) < 0 && errno == EINTR) {
    }
    (*host)->stop();
    if (const auto written = write_metrics(); !written) return report(written.error());
    return 128 + StopSignals::received();
  }

  Result<void, OutputError> write_metrics() {
    if (flags_.metrics.empty()) return {};
    const std::string text = metrics_text(*metrics_, *quota_, models_);
    return replace_file(flags_.metrics, std::as_bytes(std::span(text)));
  }

 private:
  Result<void> load_one(const DevicePtr& device, const std::string& flag) {
    auto named = named_by(flag);
    if (!named) return std::unexpected(std::move(named).error());
    auto path = find_named_model(named->model, models_folder(flags_.models));
    if (!path) return std::unexpected(std::move(path).error());
    auto manifest = load_manifest(*path);
    if (!manifest) return std::unexpected(std::move(manifest).error());
    const std::string name = named->name.empty() ? manifest->name : named->name;
    for (const auto& other : models_) {
      if (other->name() != name) continue;
      return fail(ErrorKind::kInvalidArgument,
                  str_format("--model '{}': another model is served as '{}'; give it another name: "
                             "--model NAME={}",
                             flag, name, named->model));
    }
    const SessionOptions session{
        .threads = flags_.threads > 0 ? flags_.threads : usable_cores(),
        .concurrent_runs = static_cast<int>(std::min<std::size_t>(flags_.clients, 64)),
        .engine_library = flags_.engine.library,
        .provider_library = flags_.engine.provider_library};
    auto model = SessionModel::create(
        device,
        [device, manifest = *manifest, session] { return open_session(device, manifest, session); },
        {.name = name,
         .artefact_hash = manifest->artefact_sha256,
         .idle_limit = std::chrono::duration_cast<Nanoseconds>(
             std::chrono::duration<double>(flags_.idle_seconds)),
         .total_quota = quota_,
         .metrics = metrics_});
    if (!model) {
      return std::unexpected(
          std::move(model).error().context(str_format("serving model '{}'", name)));
    }
    models_.push_back(std::move(*model));
    return {};
  }

  /// About once a second, by the host's thread.
  void look_round() {
    for (const auto& model : models_) {
      if (model->let_go_if_idle()) log("burst").info("{} was idle and is let go of", model->name());
    }
    const auto written = write_metrics();
    if (!written && !was_warned_) log("burst").warn("{}", written.error().message());
    was_warned_ = !written;
  }
  void interrupt() {
    for (const auto& model : models_) model->interrupt();
  }

  const ServeFlags& flags_;
  const std::shared_ptr<BurstMetrics> metrics_ = std::make_shared<BurstMetrics>();
  const std::shared_ptr<BurstQuota> quota_ =
      BurstQuota::create({.slots = kMostSlots, .bytes = std::uint64_t{flags_.memory_mib} << 20});
  std::vector<std::shared_ptr<SessionModel>> models_;
  bool was_warned_ = false;
};

int serve(const ServeFlags& flags) {
  if (auto room = make_room_for_files(flags.clients); !room) return report(room.error());
  Service service(flags);
  if (auto loaded = service.load(); !loaded) return report(loaded.error());
  if (auto written = service.write_metrics(); !written) return report(written.error());
  return service.serve();
}

}  // namespace

Command add_burst(CLI::App& app) {
  CLI::App* burst = app.add_subcommand("burst", "Models for other processes");
  burst->require_subcommand(1);
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command =
      burst->add_subcommand("serve", "Serve prepared models at a Unix socket; see docs/burst.md");
  command
      ->add_option("--model", flags->models_to_serve,
                   "Name, folder or manifest; NAME=MODEL: what clients ask for. Again for more")
      ->required();
  command->add_option("--socket", flags->socket, "The socket's file; only your user can use it")
      ->required();
  command->add_option("--models", flags->models, "Folder of prepared models");
  command->add_option("--threads", flags->threads, "Of one execution; default: all cores")
      ->check(CLI::Range(1, 1024));
  command->add_option("--max-clients", flags->clients, "At once")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--max-memory", flags->memory_mib,
                   "MiB of clients' memory that are mapped at once")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--idle-unload", flags->idle_seconds,
                   "A model that no client uses for so many seconds is let go of, and loaded again "
                   "for the next; default: never")
      ->check(finite_number(0, 1e6));
  command->add_option("--metrics", flags->metrics,
                      "File for Prometheus, replaced about once a second");
  add_engine_flags(*command, flags->engine);
  return [flags] { return serve(*flags); };
}

}  // namespace penstock
