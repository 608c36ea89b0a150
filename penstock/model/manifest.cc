// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/manifest.h"

#include <cstdlib>

#include "penstock/base/small_file.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// Where `artefact` really lies, after all symbolic links: inside `folder`, or an error.
Result<fs::path> resolve_inside(const fs::path& folder, const ManifestArtefact& artefact) {
  const fs::path relative(artefact.path);
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(folder / relative, error);
  if (error) {
    return fail(ErrorKind::kCorrupt,
                str_format("'{}.path' cannot be resolved: {}", artefact.field, error.message()));
  }
  const fs::path inside = resolved.lexically_relative(folder);
  // Also as text: with links, `a/../../b` may lie inside and yet not be where its name says.
  const fs::path plain = relative.lexically_normal();
  if (relative.empty() || relative.is_absolute() || inside.empty() || *inside.begin() == ".." ||
      inside == "." || *plain.begin() == "..") {
    return fail(ErrorKind::kCorrupt,
                str_format("'{}.path' is '{}', which leaves the model's folder", artefact.field,
                           artefact.path));
  }
  if (!fs::exists(resolved, error)) {
    return fail(ErrorKind::kNotFound, str_format("'{}.path' is '{}', which does not exist",
                                                 artefact.field, artefact.path));
  }
  if (!fs::is_regular_file(resolved, error)) {
    return fail(ErrorKind::kCorrupt, str_format("'{}.path' is '{}', which is no regular file",
                                                artefact.field, artefact.path));
  }
  return resolved;
}

Result<Manifest> load_checked(const fs::path& path) {
  auto text = read_small_file(path, kMaxManifestBytes);
  if (!text) return std::unexpected(text.error());
  auto document = parse_manifest(*text);
  if (!document) return std::unexpected(document.error());
  Manifest& manifest = document->manifest;
  std::error_code error;
  manifest.folder = fs::canonical(path, error).parent_path();
  if (error) return fail(ErrorKind::kIo, error.message());
  for (const ManifestArtefact& artefact : document->artefacts) {
    auto resolved = resolve_inside(manifest.folder, artefact);
    if (!resolved) return std::unexpected(resolved.error());
    auto hash = sha256_file(*resolved);
    if (!hash) return std::unexpected(hash.error());
    if (*hash != artefact.sha256) {
      return fail(ErrorKind::kCorrupt,
                  str_format("'{}.sha256' is {}, but '{}' has {}: fetch or prepare the model again",
                             artefact.field, artefact.sha256, artefact.path, *hash));
    }
    if (artefact.is_model) {
      manifest.artefact = *resolved;
      manifest.artefact_sha256 = artefact.sha256;
    } else {
      // By the name that the model knows it by, which may be a link's.
      manifest.data.push_back(
          {.path = fs::path(artefact.path).lexically_normal().string(), .sha256 = artefact.sha256});
    }
  }
  return std::move(manifest);
}

}  // namespace

Result<Manifest> load_manifest(const fs::path& path) {
  std::error_code error;
  const fs::path file = fs::is_directory(path, error) ? path / "manifest.json" : path;
  auto manifest = load_checked(file);
  if (!manifest) {
    return std::unexpected(
        std::move(manifest).error().context(str_format("model manifest '{}'", file.string())));
  }
  return manifest;
}

fs::path models_folder(const fs::path& explicit_folder) {
  if (!explicit_folder.empty()) return explicit_folder;
  // The XDG base directory specification: relative values are to be ignored.
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data == '/') {
    return fs::path(data) / "penstock/models";
  }
  const char* home = std::getenv("HOME");
  return fs::path(home && *home ? home : ".") / ".local/share/penstock/models";
}

Result<fs::path> find_model(const std::string& name_or_path, const fs::path& models) {
  std::error_code error;
  const fs::path given(name_or_path);
  if (name_or_path.empty()) {
    return fail(ErrorKind::kInvalidArgument, "the model's name is empty");
  }
  const bool is_name = name_or_path.find('/') == std::string::npos;
  if (is_name) {
    const fs::path manifest = models / given / "manifest.json";
    if (fs::exists(manifest, error)) return manifest;
  }
  if (fs::is_directory(given, error) && fs::exists(given / "manifest.json", error)) {
    return given / "manifest.json";
  }
  if (fs::is_regular_file(given, error)) return given;
  if (!is_name) {
    return fail(ErrorKind::kNotFound, str_format("no model manifest at '{}'", name_or_path));
  }
  return fail(
      ErrorKind::kNotFound,
      str_format(
          "no model '{}' in '{}': `penstock model list` says which there are and which can be "
          "fetched; or give the path of a manifest.json",
          name_or_path, models.string()));
}

}  // namespace penstock
