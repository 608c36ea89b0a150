// SPDX-License-Identifier: Apache-2.0
//
// penstock ctl: from flags to a line of JSON, and from the answer to words.
#include <simdjson.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/json_text.h"
#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/control_server.h"

namespace penstock {
namespace {

/// Removing and adding return at once; a run that is busy for longer hangs.
constexpr Nanoseconds kTimeout = std::chrono::seconds(10);

struct CtlFlags {
  std::string socket;
  std::string name, uri, file, device, zones, lines;
  bool loop = false;
};

std::string command_line(std::string_view command) {
  std::string line = "{\"command\":";
  append_json_string(line, command);
  return line + "}";
}

std::string remove_line(const CtlFlags& flags) {
  std::string line = "{\"command\":\"remove\",\"name\":";
  append_json_string(line, flags.name);
  return line + "}";
}

std::string add_line(const CtlFlags& flags) {
  std::string line = "{\"command\":\"add\",\"source\":{\"name\":";
  append_json_string(line, flags.name);
  // The run has a working folder of its own.
  std::error_code ec;
  const std::string file =
      flags.file.empty() ? "" : std::filesystem::absolute(flags.file, ec).string();
  for (const auto& [key, value] :
       {std::pair{"uri", &flags.uri}, std::pair{"file", &file}, std::pair{"v4l2", &flags.device},
        std::pair{"zones", &flags.zones}, std::pair{"lines", &flags.lines}}) {
    if (value->empty()) continue;
    line += str_format(",\"{}\":", key);
    append_json_string(line, *value);
  }
  if (flags.loop) line += ",\"loop\":true";
  return line + "}}";
}

/// Empty when there is none.
std::string text_in(simdjson::dom::element map, std::string_view key) {
  std::string_view text;
  return map[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

/// The answer's sources, a line each; as JSON for `stats`, whose readers are programs.
int show(const std::string& answer, bool as_json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  bool ok = false;
  if (parser.parse(answer).get(root) != simdjson::SUCCESS ||
      root["ok"].get(ok) != simdjson::SUCCESS) {
    return report(Error(ErrorKind::kCorrupt, "the run's answer is not what it should be"));
  }
  if (!ok) {
    const bool is_exhausted = text_in(root, "kind") == to_string(ErrorKind::kExhausted);
    return report(Error(ErrorKind::kInvalidArgument, text_in(root, "error")),
                  is_exhausted ? kExitSystem : kExitData);
  }
  simdjson::dom::array sources;
  if (root["sources"].get(sources) != simdjson::SUCCESS) return kExitOk;
  for (const simdjson::dom::element source : sources) {
    if (as_json) {
      say(simdjson::to_string(source));
      continue;
    }
    say(str_format("{:<20} {:<10} {}", text_in(source, "name"), text_in(source, "state"),
                   text_in(source, "address")));
  }
  return kExitOk;
}

int ask(const CtlFlags& flags, const std::string& line, bool as_json = false) {
  auto answer = ask_control(flags.socket, line, kTimeout);
  return answer ? show(*answer, as_json) : report(answer.error());
}

}  // namespace

Command add_ctl(CLI::App& app) {
  auto flags = std::make_shared<CtlFlags>();
  CLI::App* ctl = app.add_subcommand("ctl", "Ask or change a run that has a control socket");
  ctl->add_option("--socket", flags->socket, "The run's `control`")->required();
  ctl->require_subcommand(1);
  CLI::App* list = ctl->add_subcommand("list", "The sources and their states");
  CLI::App* stats = ctl->add_subcommand("stats", "A line of JSON for each source");
  CLI::App* remove =
      ctl->add_subcommand("remove", "End a source; what it has accepted is finished");
  remove->add_option("name", flags->name, "The source's name")->required();
  CLI::App* add = ctl->add_subcommand("add", "Add a source");
  add->add_option("--name", flags->name, "1 to 64 letters, digits, '_' or '-'")->required();
  CLI::Option* uri = add->add_option("--uri", flags->uri, "An rtsp:// address");
  CLI::Option* file = add->add_option("--file", flags->file, "A video file")->excludes(uri);
  add->add_option("--v4l2", flags->device, "A camera's device")->excludes(uri)->excludes(file);
  add->add_option("--zones", flags->zones, "penzone's property of that name");
  add->add_option("--lines", flags->lines, "penzone's property of that name");
  add->add_flag("--loop", flags->loop, "Begin a file again at its end");
  return [flags, list, stats, remove] {
    if (list->parsed()) return ask(*flags, command_line("list"));
    if (stats->parsed()) return ask(*flags, command_line("stats"), true);
    return ask(*flags, remove->parsed() ? remove_line(*flags) : add_line(*flags));
  };
}

}  // namespace penstock
