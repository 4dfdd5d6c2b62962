// seed SOURCE_DIR TARGET_DIR: copies a database that this program has open, and
//   may continue to write, to TARGET_DIR.
// seed mirror SOURCE DIR: pulls all databases of a source.
// seed archive DIRECTORY ARCHIVE: makes an archive and pushes a first set.
#include <iostream>
#include <string>
#include <thread>

#include "rocksdb/db.h"
#include "sstferry/archive.h"
#include "sstferry/fleet.h"
#include "sstferry/rate_limited_log.h"
#include "sstferry/source.h"
#include "sstferry/status.h"
#include "sstferry/target.h"

namespace {

rocksdb::Status Mirror(const std::string& source, const std::string& dir) {
  sstferry::FleetOptions fleet;
  fleet.pull.target_dir = dir;
  rocksdb::Status status = ParseSourceAddress(source, &fleet.pull.source);
  sstferry::Summary sums;
  return status.ok() ? sstferry::MakeFleet(fleet)->Run(&sums) : status;
}

rocksdb::Status Archive(const std::string& directory,
                        const std::string& archive) {
  sstferry::ArchiveOptions options;
  options.source.directory = directory;
  rocksdb::Status status = ParseStoreAddress(archive, &options.store.where);
  for (const auto action :
       {sstferry::ArchiveAction::kInit, sstferry::ArchiveAction::kPush}) {
    options.action = action;
    sstferry::ArchiveReport report;
    if (status.ok()) status = MakeArchiveJob(options)->Run(&report);
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) {
    const rocksdb::Status done = argv[1] == std::string("mirror")
                                     ? Mirror(argv[2], argv[3])
                                     : Archive(argv[2], argv[3]);
    if (!done.ok()) std::cerr << sstferry::MessageOf(done) << "\n";
    return done.ok() ? 0 : 1;
  }
  if (argc != 3) return 2;
  rocksdb::Options create;
  create.create_if_missing = true;
#if ROCKSDB_MAJOR < 11
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(create, argv[1], &db);
  const std::unique_ptr<rocksdb::DB> owner(db);
#else
  std::unique_ptr<rocksdb::DB> owner;
  rocksdb::Status status = rocksdb::DB::Open(create, argv[1], &owner);
  rocksdb::DB* const db = owner.get();
#endif
  if (status.ok()) status = db->Put({}, "greeting", "in no SST file yet");

  sstferry::ServeOptions serve;  // the source: gives what db holds now
  serve.databases = {{"orders", /*directory=*/"", db, /*handles=*/{}}};
  sstferry::RateLimitedLog lines;  // limits the lines that peers cause
  serve.log = [&](sstferry::LogLevel, const std::string& line) {
    if (const auto admitted = lines.Admit(line)) std::cerr << *admitted << "\n";
  };
  std::unique_ptr<sstferry::Listener> listener;
  if (status.ok()) status = sstferry::ListenTcp({"127.0.0.1", 0}, &listener);
  std::unique_ptr<sstferry::SourceServer> server;
  if (status.ok())
    status = MakeSourceServer(serve, std::move(listener), &server);
  sstferry::Summary summary;
  if (status.ok()) {
    std::jthread run([&] { server->Run().PermitUncheckedError(); });
    sstferry::PullOptions pull;  // the target: usually another process
    status = ParseSourceAddress("sst://" + server->address() + "/orders",
                                &pull.source);
    pull.target_dir = argv[2];
    pull.verify = true;
    if (status.ok()) status = sstferry::MakePull(pull)->Run(&summary);
    server->Stop();
    std::cout << SummaryToJson(summary, "pull") << "\n";
  }
  sstferry::StatusOptions where;  // asks for the target's state
  where.where.directory = argv[2];
  sstferry::StatusReport report;
  if (status.ok()) status = MakeStatusQuery(where)->Run(&report);
  if (status.ok() && !report.target.complete) return 1;
  if (!status.ok()) std::cerr << sstferry::MessageOf(status) << "\n";
  return status.ok() ? 0 : 1;
}
