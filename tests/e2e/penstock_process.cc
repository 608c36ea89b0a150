// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/penstock_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <simdjson.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>
#include <thread>

#include "penstock/model/testing/test_models.h"
#include "tests/e2e/clips.h"

extern char** environ;

namespace penstock::e2e {
namespace {

using SteadyClock = std::chrono::steady_clock;

int milliseconds_to(SteadyClock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
  return int(std::max<std::int64_t>(left.count(), 0));
}

/// Limits the files of what is started meanwhile.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::size_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    if (bytes == 0) return;
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

/// What lets root read what nobody may, taken from this thread and from what it starts. False when
/// the system does not let it be taken.
bool drop_override() {
  for (const int capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return false;
  }
  return true;
}

/// Runs `start` on a thread of its own when its children are to be bound by modes: what the thread
/// drops it can't have back.
void start_bound(bool bound, const std::function<void()>& start) {
  if (!bound || ::geteuid() != 0) return start();
  std::thread([&start] {
    EXPECT_TRUE(drop_override());
    start();
  }).join();
}

}  // namespace

bool can_bind_by_modes() {
  if (::geteuid() != 0) return true;
  bool dropped = false;
  std::thread([&dropped] { dropped = drop_override(); }).join();
  return dropped;
}

PenstockProcess::PenstockProcess(const std::vector<std::string>& arguments,
                                 const Surroundings& surroundings) {
  int out[2];
  int err[2];
  EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
  std::vector<std::string> words{PENSTOCK_PROGRAM};
  if (surroundings.open_files_limit > 0) {
    words.insert(words.begin(), {"/bin/sh", "-c",
                                 "ulimit -n " + std::to_string(surroundings.open_files_limit) +
                                     "; exec \"$0\" \"$@\""});
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> added = surroundings.environment;
  std::vector<char*> variables;
  for (std::string& variable : added) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name =
        std::string_view(*variable).substr(0, std::strcspn(*variable, "=") + 1);
    if (std::ranges::none_of(added, [name](const auto& one) { return one.starts_with(name); })) {
      variables.push_back(*variable);
    }
  }
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  if (surroundings.output == "-") {
    posix_spawn_file_actions_addclose(&actions, STDOUT_FILENO);
  } else if (!surroundings.output.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, surroundings.output.c_str(), O_WRONLY,
                                     0);
  } else if (!surroundings.out_file.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, surroundings.out_file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  }
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  posix_spawnattr_setsigdefault(&attributes, &hangup);
  if (!surroundings.hangup_ignored) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const auto before = std::signal(SIGHUP, surroundings.hangup_ignored ? SIG_IGN : SIG_DFL);
  start_bound(surroundings.bound_by_modes, [&] {
    const FileSizeLimit limit(surroundings.file_size_limit);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), variables.data()),
              0)
        << argv[0];
  });
  std::signal(SIGHUP, before);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

PenstockProcess::~PenstockProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (int fd : {out_, err_}) {
    if (fd >= 0) ::close(fd);
  }
}

void PenstockProcess::signal(int number) { ::kill(pid_, number); }

bool PenstockProcess::pump(int timeout_ms) {
  // poll ignores negative descriptors.
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  if (::poll(fds, 2, timeout_ms) <= 0) return false;
  char bytes[4096];
  for (int i = 0; i < 2; ++i) {
    if (fds[i].revents == 0) continue;
    int& fd = i == 0 ? out_ : err_;
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got > 0) {
      (i == 0 ? ended_.out : ended_.err).append(bytes, std::size_t(got));
    } else {
      ::close(fd);
      fd = -1;
    }
  }
  return true;
}

bool PenstockProcess::await_error_output(const std::string& text, int times) {
  const auto end = SteadyClock::now() + std::chrono::minutes(1);
  const auto shown = [&] {
    int count = 0;
    for (std::size_t at = 0; (at = ended_.err.find(text, at)) != std::string::npos;
         at += text.size()) {
      ++count;
    }
    return count;
  };
  while (shown() < times) {
    if (!pump(milliseconds_to(end))) return false;
  }
  return true;
}

Ended PenstockProcess::wait() {
  const auto end = SteadyClock::now() + std::chrono::minutes(2);
  while (pump(milliseconds_to(end))) {
  }
  if (out_ >= 0 || err_ >= 0) ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  if (out_ < 0 && err_ < 0) {
    ended_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return ended_;
}

Ended run_penstock(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  return PenstockProcess(arguments, surroundings).wait();
}

std::vector<JsonLine> read_json_lines(const std::filesystem::path& path) {
  std::vector<JsonLine> lines;
  std::ifstream file(path);
  simdjson::dom::parser parser;
  for (std::string text; std::getline(file, text);) {
    simdjson::dom::element value;
    if (parser.parse(text).get(value) != simdjson::SUCCESS) {
      ADD_FAILURE() << "not JSON: " << text;
      continue;
    }
    JsonLine line;
    std::int64_t frame = -1, pts = -2, width = 0, height = 0;
    std::string_view source;
    simdjson::dom::array objects;
    EXPECT_EQ(value["source"].get(source), simdjson::SUCCESS);
    EXPECT_EQ(value["frame"].get(frame), simdjson::SUCCESS);
    EXPECT_EQ(value["pts_ns"].get(pts), simdjson::SUCCESS);
    EXPECT_EQ(value["width"].get(width), simdjson::SUCCESS);
    EXPECT_EQ(value["height"].get(height), simdjson::SUCCESS);
    EXPECT_EQ(value["objects"].get(objects), simdjson::SUCCESS);
    line.source = source;
    line.frame = frame;
    line.pts_ns = pts;
    line.width = int(width);
    line.height = int(height);
    for (simdjson::dom::element object : objects) {
      JsonBox box;
      std::string_view label;
      std::int64_t class_id = -1;
      EXPECT_EQ(object["label"].get(label), simdjson::SUCCESS);
      EXPECT_EQ(object["class_id"].get(class_id), simdjson::SUCCESS);
      EXPECT_EQ(object["confidence"].get(box.confidence), simdjson::SUCCESS);
      EXPECT_EQ(object["x"].get(box.x), simdjson::SUCCESS);
      EXPECT_EQ(object["y"].get(box.y), simdjson::SUCCESS);
      EXPECT_EQ(object["w"].get(box.w), simdjson::SUCCESS);
      EXPECT_EQ(object["h"].get(box.h), simdjson::SUCCESS);
      std::int64_t track_id = 0;
      if (object["track_id"].get(track_id) == simdjson::SUCCESS) box.track_id = track_id;
      if (object["predicted"].get(box.predicted) == simdjson::SUCCESS) {
        EXPECT_TRUE(box.predicted) << "the key is absent otherwise";
      }
      box.label = label;
      box.class_id = int(class_id);
      line.objects.push_back(box);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::filesystem::path fresh_folder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "penstock-e2e" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::filesystem::path square_model(const std::filesystem::path& folder) {
  return model_testing::write_model_folder(model_testing::make_square_finder_nanodet(kSide),
                                           folder / "square-finder");
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace penstock::e2e
