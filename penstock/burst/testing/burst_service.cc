// SPDX-License-Identifier: Apache-2.0
//
// The server's process of a client's process tests:
//
//   burst_service SOCKET   serves the model "stuck": values [4] float32 -> values [4] float32,
//                          whose runs never end
//
// Its standard output is for the test: an 'r' when it listens, an 'x' at the start of each run.
#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/burst_host.h"
#include "penstock/burst/session_model.h"
#include "penstock/memory/device.h"
#include "penstock/model/session.h"

namespace penstock {
namespace {

void tell(char what) {
  if (::write(STDOUT_FILENO, &what, 1) != 1) ::_exit(3);
}

class StuckSession final : public Session {
 public:
  const std::vector<TensorSpec>& inputs() const override { return specs_; }
  const std::vector<TensorSpec>& outputs() const override { return specs_; }
  Result<std::vector<Tensor>> run(std::span<const Tensor>) override {
    tell('x');
    while (true) ::pause();
  }
  void interrupt() override {}

 private:
  const std::vector<TensorSpec> specs_{
      {"values", DataType::kFloat32, TensorLayout::kAny, {Dimension::fixed(4)}}};
};

int serve(const std::string& path) {
  auto device = open_device({DeviceKind::kCpu, 0});
  if (!device) return 1;
  SessionModelOptions options;
  options.name = "stuck";
  auto model = SessionModel::create(
      *device,
      []() -> Result<std::shared_ptr<Session>> { return std::make_shared<StuckSession>(); },
      std::move(options));
  if (!model) return 1;
  const auto host = BurstHost::listen(path, {{"stuck", *model}});
  if (!host) return 1;
  tell('r');
  while (true) ::pause();
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) { return count == 2 ? penstock::serve(arguments[1]) : 2; }
