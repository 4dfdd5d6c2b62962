#include "tests/support/restored.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "sstferry/source.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"

namespace sstferry::test {

namespace fs = std::filesystem;

namespace {

std::map<std::string, std::string> DataOf(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const char* const suffix : {".sst", ".blob", ".log"}) {
    for (const std::string& path : PathsWith(directory, suffix)) {
      std::ifstream in(path, std::ios::binary);
      files[fs::path(path).filename()] = BytesIn(in);
    }
  }
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  return files;
}

ArchiveReport RunJob(const ArchiveOptions& options) {
  ArchiveReport report;
  REQUIRE_OK(MakeArchiveJob(options)->Run(&report));
  return report;
}

}  // namespace

void InitArchive(const std::string& archive) {
  fs::create_directory(archive);
  ArchiveOptions options;
  options.action = ArchiveAction::kInit;
  options.store.where.directory = archive;
  RunJob(options);
}

std::string PushTo(const std::string& archive, const std::string& source_dir,
                   const std::string& label) {
  ArchiveOptions options;
  options.action = ArchiveAction::kPush;
  options.store.where.directory = archive;
  options.source.directory = source_dir;
  options.label = label;
  return RunJob(options).sets.at(0).name;
}

LogPath FirstPathOf(const ArchiveLog& log, const SetLog& after) {
  LogPath first;
  log.PathsOf(after, [&first](const LogPath& path) {
    first = path;
    return false;
  });
  return first;
}

Ferried RestoreFrom(const std::string& archive, const std::string& target_dir,
                    PullOptions options) {
  const std::string place = archive.substr(0, archive.find('@'));
  const std::string before = Fingerprint(place);
  options.source = SourceAddress();
  options.source.directory = archive;
  options.target_dir = target_dir;
  Ferried result;
  result.status = MakePull(options)->Run(&result.summary);
  REQUIRE(Fingerprint(place) == before);
  return result;
}

Ferried RestoreThrough(std::shared_ptr<SnapshotOrigin> origin, PullOptions pull,
                       const std::string& snapshot_dir,
                       const MakeRestore& make) {
  ServeOptions serve;
  serve.snapshot_dir = snapshot_dir;
  ServedDatabase database;
  database.name = "local";
  database.origin = origin;
  serve.databases.push_back(database);
  MemoryTransport transport = MakeMemoryTransport();
  std::unique_ptr<SourceServer> source;
  REQUIRE_OK(MakeSourceServer(serve, std::move(transport.listener), &source));
  std::thread runs([&source] { source->Run().PermitUncheckedError(); });
  pull.source.archive.emplace().directory = "/in/memory";
  pull.source.name = database.name;
  Ferried restored;
  restored.status =
      make(pull, transport.dialer.get())->Run(&restored.summary);
  origin->Cancel();
  source->Stop();
  runs.join();
  return restored;
}

void RequireRestoredAs(const std::string& source_dir,
                       const std::string& clone_dir) {
  const ScratchDir dir;
  InitArchive(dir / "archive");
  PushTo(dir / "archive", source_dir);
  const Ferried restored = RestoreFrom(dir / "archive", dir / "restored");
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(restored.summary.method == "clone");
  REQUIRE((DataOf(dir / "restored") == DataOf(clone_dir)));
}

}  // namespace sstferry::test
