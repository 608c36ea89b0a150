// SPDX-License-Identifier: Apache-2.0
//
// packaged_peer NAME: reads how many round trips (int), writes how long each took (double, in
// nanoseconds), until there is nothing more to read. Standard error has what the libraries say.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string_view>

#include "bench/burst_packaged_peers.h"

namespace {

using namespace penstock;
using namespace penstock::bench;

Result<AskerPtr> make(std::string_view name) {
  if (name == "boost-mq") return make_boost_mq();
  if (name == "grpc") return make_grpc();
  if (name == "iceoryx") return make_iceoryx();
  return fail(ErrorKind::kInvalidArgument, "packaged_peer boost-mq|grpc|iceoryx");
}

int answer(Asker& asker, int to) {
  int count = 0;
  while (::read(STDIN_FILENO, &count, sizeof count) == ssize_t(sizeof count)) {
    const auto times = time_round_trips(asker, count);
    if (!times) {
      std::fprintf(stderr, "%s\n", times.error().message().c_str());
      return 1;
    }
    const auto bytes = std::as_bytes(std::span(*times));
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t written = ::write(to, bytes.data() + done, bytes.size() - done);
      if (written <= 0) return 1;
      done += static_cast<std::size_t>(written);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Libraries may print.
  const int to = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  stay_on_core(0);
  const auto asker = make(argc == 2 ? argv[1] : "");
  if (!asker) {
    std::fprintf(stderr, "%s\n", asker.error().message().c_str());
    return 1;
  }
  return answer(**asker, to);
}
