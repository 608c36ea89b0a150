// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/log.h"
#include "penstock/pipeline/source.h"

namespace {

/// A file that is opened later must not become a standard stream that was closed. What takes its
/// place can't be used in its direction, so that what is lost is still noticed.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

/// A reader that has enough and goes, as `head` does, is no failure.
bool reader_is_gone() {
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// What was said must have arrived, unless something worse is to be told.
int with_output(int code) {
  const bool is_lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!is_lost || code != penstock::kExitOk || reader_is_gone()) return code;
  std::fprintf(stderr, "penstock: cannot write to the standard output; not all of it arrived\n");
  return penstock::kExitIo;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// `text` repeats words of the command line, or what they have behind their "=", and that may be an
/// address.
std::string without_passwords(std::string text, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    for (const std::string& part : {word, word.substr(word.find('=') + 1)}) {
      const std::string shown = penstock::without_password(part);
      if (shown != part) replace_all(text, part, shown);
    }
  }
  return text;
}

/// Like all errors: who says it, and in lower case; and where the right words stand.
std::string usage_error(std::string what, const CLI::App& app) {
  if (what.size() > 1 && std::islower(static_cast<unsigned char>(what[1])) != 0) {
    what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  }
  std::string command = app.get_name();
  for (auto parsed = app.get_subcommands(); !parsed.empty();
       parsed = parsed.front()->get_subcommands()) {
    command += " " + parsed.front()->get_name();
  }
  return "penstock: " + what + "\npenstock: '" + command + " --help' tells what it takes\n";
}

int run_program(int argc, char** argv) {
  CLI::App app("Penstock: video analytics that account for every copy", "penstock");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  app.require_subcommand(1);
  std::string level = "warn";
  app.add_option("--log-level", level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));

  std::vector<std::pair<CLI::App*, penstock::Command>> commands;
  const auto add = [&](const char* name, auto make) {
    penstock::Command command = make(app);
    commands.emplace_back(app.get_subcommand(name), std::move(command));
  };
  add("run", penstock::add_run);
  add("check", penstock::add_check);
  add("ctl", penstock::add_ctl);
  add("burst", penstock::add_burst);
  add("doctor", penstock::add_doctor);
  add("model", penstock::add_model);

  try {
    app.parse(argc, argv);
    penstock::set_log_level(level);
    for (const auto& [subcommand, command] : commands) {
      if (subcommand->parsed()) return command();
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version.
      std::ostringstream out;
      app.exit(error, out, out);
      std::fputs(out.str().c_str(), stdout);
      return penstock::kExitOk;
    }
    const std::string message = without_passwords(usage_error(error.what(), app), argc, argv);
    std::fputs(message.c_str(), stderr);
    return penstock::kExitUsage;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "penstock: no memory is left (ulimit -v, or the machine's)\n");
    return penstock::kExitSystem;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock: internal error: %s\n", error.what());
    return penstock::kExitSoftware;
  }
  return penstock::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  // A file that reaches the limit of `ulimit -f` is an error with a message, not a silent death.
  std::signal(SIGXFSZ, SIG_IGN);
  return with_output(run_program(argc, argv));
}
