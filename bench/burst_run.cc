// SPDX-License-Identifier: Apache-2.0
#include "bench/burst_run.h"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "penstock/burst/burst_host.h"
#include "penstock/burst/burst_server.h"
#include "penstock/burst/mapped_memory.h"
#include "penstock/burst/remote_model.h"
#include "penstock/burst/session_model.h"
#include "penstock/memory/device.h"
#include "penstock/model/manifest.h"

namespace penstock::bench {
namespace {

class SmallExecutor final : public BurstExecutor {
 public:
  bool is_cached(std::int32_t slot) const override { return memories_.contains(slot); }
  ErrorStatus add(std::int32_t slot, BurstMemory memory) override {
    auto mapped = MappedMemory::map(std::move(memory), *quota_);
    if (!mapped) return ErrorStatus::kInvalidArgument;
    memories_[slot] = std::move(*mapped);
    return ErrorStatus::kNone;
  }
  void remove(std::int32_t slot) override { memories_.erase(slot); }
  BurstResult execute(const BurstRequest& request, Deadline) override {
    BurstResult result{.status = ErrorStatus::kInvalidArgument, .shapes = {}, .timing = {}};
    if (request.inputs.size() != 1 || request.outputs.size() != 1) return result;
    const auto input = bytes_of(request, request.inputs[0]);
    const auto output = bytes_of(request, request.outputs[0]);
    if (input.empty() || output.empty()) return result;
    output[0] = static_cast<std::byte>(std::to_integer<int>(input.front()) +
                                       std::to_integer<int>(input.back()));
    result.status = ErrorStatus::kNone;
    result.shapes.push_back({{1, 1, 1, 1}, true});
    return result;
  }

 private:
  std::span<std::byte> bytes_of(const BurstRequest& request, const RequestArgument& argument) {
    const DataLocation& at = argument.location;
    if (at.pool >= request.slots.size()) return {};
    const auto all = memories_.at(request.slots[at.pool])->bytes();
    if (std::uint64_t{at.offset} + at.length > all.size()) return {};
    return all.subspan(at.offset, at.length);
  }

  std::shared_ptr<BurstQuota> quota_ = BurstQuota::create({});
  std::map<std::int32_t, std::shared_ptr<MappedMemory>> memories_;
};

class SmallModel final : public BurstModel {
 public:
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  const std::string& artefact_hash() const override { return hash_; }
  ConfiguredBurst configure_burst(BurstConfiguration configuration) override {
    return BurstServer::create(std::move(configuration), std::make_unique<SmallExecutor>());
  }

 private:
  const std::vector<TensorSpec> inputs_{
      {"in",
       DataType::kUint8,
       TensorLayout::kAny,
       {Dimension::fixed(1), Dimension::fixed(1), Dimension::fixed(1), {1, 1 << 30, {}}}}};
  const std::vector<TensorSpec> outputs_{
      {"out",
       DataType::kUint8,
       TensorLayout::kAny,
       {Dimension::fixed(1), Dimension::fixed(1), Dimension::fixed(1), Dimension::fixed(1)}}};
  const std::string hash_;
};

class BurstAsker final : public Asker {
 public:
  BurstAsker(std::unique_ptr<BurstClient> client, std::shared_ptr<SharedFile> in,
             std::shared_ptr<SharedFile> out, std::size_t bytes)
      : client_(std::move(client)), in_(std::move(in)), out_(std::move(out)) {
    const auto size = static_cast<std::uint32_t>(bytes);
    execution_ = {.inputs = {{.memory = in_, .length = size, .dimensions = {1, 1, 1, size}}},
                  .outputs = {{.memory = out_, .length = 1, .dimensions = {1, 1, 1, 1}}}};
  }
  Result<void> ask() override {
    const auto value = static_cast<std::byte>(++round_);
    in_->bytes()[0] = value;
    execution_.deadline = Deadline::after(Clock::system(), std::chrono::seconds(1));
    const auto executed = client_->execute_into(execution_, done_);
    if (!executed) return fail(ErrorKind::kDeadline, executed.error().message);
    if (done_.result.status != ErrorStatus::kNone || out_->bytes()[0] != value) {
      return fail(ErrorKind::kCorrupt, "burst");
    }
    return {};
  }

 private:
  std::unique_ptr<BurstClient> client_;
  std::shared_ptr<SharedFile> in_, out_;
  BurstClient::Execution execution_;
  BurstClient::Done done_;
  unsigned round_ = 0;
};

}  // namespace

BurstServerProcess::BurstServerProcess(std::filesystem::path folder, pid_t pid)
    : folder_(std::move(folder)), socket_(folder_ / "burst"), pid_(pid) {}

BurstServerProcess::~BurstServerProcess() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void BurstServerProcess::kill() const { ::kill(pid_, SIGKILL); }

Nanoseconds BurstServerProcess::cpu() const {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

Result<std::unique_ptr<BurstServerProcess>> BurstServerProcess::start(
    const std::filesystem::path& manifest, const std::string& library) {
  std::string folder = (std::filesystem::temp_directory_path() / "penstock-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return fail(ErrorKind::kIo, "no folder");
  const std::string socket = folder + "/burst";
  std::vector<std::string> words{"bench_burst",     "--serve", socket,
                                 manifest.string(), library,   std::to_string(::getpid())};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0) {
    return fail(ErrorKind::kExhausted, "no process");
  }
  std::unique_ptr<BurstServerProcess> server(new BurstServerProcess(folder, pid));
  const TimePoint until = Clock::system().now() + std::chrono::seconds(20);
  while (Clock::system().now() < until) {
    if (RemoteModel::connect(socket, "small")) return server;
    if (::waitpid(pid, nullptr, WNOHANG) != 0) break;
    std::this_thread::yield();
  }
  return fail(ErrorKind::kDevice, "the server of bursts does not come up");
}

int serve_from_arguments(int argc, char** argv) {
  if (argc != 6) return 64;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != std::atoi(argv[5])) return 0;
  const std::string manifest_path = argv[3];
  BurstHost::Models models{{"small", std::make_shared<SmallModel>()}};
  if (!manifest_path.empty()) {
    auto manifest = load_manifest(manifest_path);
    auto device = open_device({DeviceKind::kCpu, 0});
    if (!manifest || !device) return 1;
    auto model = SessionModel::create(
        *device,
        [device = *device, manifest = *manifest, library = std::string(argv[4])] {
          return open_session(device, manifest, {.engine_library = library});
        },
        {.name = manifest->name, .artefact_hash = manifest->artefact_sha256});
    if (!model) {
      std::fprintf(stderr, "%s\n", model.error().message().c_str());
      return 1;
    }
    models.emplace("prepared", *model);
  } else {
    stay_on_core(1);  // All threads of this process.
  }
  const auto host = BurstHost::listen(argv[2], std::move(models));
  if (!host) {
    std::fprintf(stderr, "%s\n", host.error().message().c_str());
    return 1;
  }
  while (true) ::pause();
}

Result<AskerPtr> make_burst(const std::filesystem::path& socket, std::size_t bytes,
                            Nanoseconds poll_window) {
  auto model = RemoteModel::connect(socket, "small");
  if (!model) return std::unexpected(model.error());
  auto client =
      BurstClient::create(*model, {.poll_window = poll_window, .service_poll_window = poll_window});
  if (!client) return std::unexpected(client.error());
  auto in = SharedFile::create(bytes, MapAccess::kRead);
  auto out = SharedFile::create(1, MapAccess::kReadWrite);
  if (!in || !out) return fail(ErrorKind::kExhausted, "no memory");
  return std::make_unique<BurstAsker>(std::move(*client), std::move(*in), std::move(*out), bytes);
}

}  // namespace penstock::bench
