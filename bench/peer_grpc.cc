// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "bench/burst_packaged_peers.h"
#include "burst_peer.grpc.pb.h"

namespace penstock::bench {
namespace {

constexpr std::chrono::seconds kPatience(1);

class Service final : public Peer::Service {
  grpc::Status Ask(grpc::ServerContext*, const Bytes* question, Bytes* answer) override {
    std::string bytes(kAnswerBytes, 0);
    bytes[0] = static_cast<char>(answer_of(static_cast<std::uint8_t>(question->data().at(0))));
    answer->set_data(std::move(bytes));
    return grpc::Status::OK;
  }
};

void serve(const std::string& address) {
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server) server->Wait();
}

class GrpcAsker final : public Asker {
 public:
  GrpcAsker(std::filesystem::path folder, std::unique_ptr<Child> child,
            const std::shared_ptr<grpc::Channel>& channel)
      : folder_(std::move(folder)), child_(std::move(child)), stub_(Peer::NewStub(channel)) {}
  ~GrpcAsker() override {
    child_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Result<void> ask() override {
    std::string bytes(kQuestionBytes, 0);
    bytes[0] = static_cast<char>(++round_);
    const auto expected = static_cast<char>(answer_of(round_));
    Bytes question, answer;
    question.set_data(std::move(bytes));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const grpc::Status status = stub_->Ask(&context, question, &answer);
    if (!status.ok()) return fail(ErrorKind::kDeadline, "grpc: " + status.error_message());
    if (answer.data().size() != kAnswerBytes || answer.data()[0] != expected) {
      return fail(ErrorKind::kCorrupt, "grpc");
    }
    return {};
  }

 private:
  const std::filesystem::path folder_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<Peer::Stub> stub_;
  std::uint8_t round_ = 0;
};

}  // namespace

Result<AskerPtr> make_grpc() {
  std::string folder = (std::filesystem::temp_directory_path() / "penstock-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return fail(ErrorKind::kIo, "no folder");
  const std::string address = "unix:" + folder + "/grpc";
  auto child = Child::start([&] { serve(address); });
  if (!child) return std::unexpected(child.error());
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20))) {
    return fail(ErrorKind::kDevice, "grpc: no connection");
  }
  return std::make_unique<GrpcAsker>(folder, std::move(*child), channel);
}

}  // namespace penstock::bench
