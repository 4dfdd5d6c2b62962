// Seeds a database by files and by entries with a server and a puller, in one
// process and without the rooms above them. Exit code 0: both replicas have all
// entries.
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/pull/clone_target.h"
#include "pipeline/pull/puller.h"
#include "pipeline/pull/seed_target.h"
#include "pipeline/serve/server.h"
#include "rocksdb/db.h"
#include "sstferry/transport.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {
namespace {

using rocksdb::Status;

constexpr int kKeys = 5'000;

std::string KeyOf(int i) { return "key" + std::to_string(i); }
std::string ValueOf(int i) { return "value" + std::to_string(i * 7); }

// Writes tables and a WAL.
Status MakeDatabase(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  RETURN_IF_ERROR(rocksdb::DB::Open(options, directory, IntoDb(&db)));
  for (int i = 0; i < kKeys; ++i) {
    RETURN_IF_ERROR(db->Put(rocksdb::WriteOptions(), KeyOf(i), ValueOf(i)));
    if (i == kKeys / 2) {
      RETURN_IF_ERROR(db->Flush(rocksdb::FlushOptions()));
    }
  }
  return Status::OK();
}

Status CompareReplica(const std::string& directory) {
  std::unique_ptr<rocksdb::DB> db;
  RETURN_IF_ERROR(rocksdb::DB::Open(rocksdb::Options(), directory,
                                    IntoDb(&db)));
  for (int i = 0; i < kKeys; ++i) {
    std::string value;
    RETURN_IF_ERROR(db->Get(rocksdb::ReadOptions(), KeyOf(i), &value));
    if (value != ValueOf(i)) {
      return Status::Corruption(KeyOf(i) + ": expected " + ValueOf(i) +
                                ", found " + value);
    }
  }
  return Status::OK();
}

Status Seed(Dialer* dialer, PullMethod method, const std::string& target_dir) {
  PullOptions options;
  options.source.host = "in-process";
  options.source.name = "db";
  options.target_dir = target_dir;
  options.method = method;
  options.verify = true;
  options.full_rate = true;
  Puller puller(options, dialer,
                [method](const TargetInputs& inputs)
                    -> std::unique_ptr<PullTarget> {
                  if (method == PullMethod::kClone) {
                    return std::make_unique<CloneTarget>(inputs);
                  }
                  return std::make_unique<SeedTarget>(inputs);
                });
  Summary summary;
  return puller.Run(&summary);
}

Status Run() {
  const ScratchDir dir;
  RETURN_IF_ERROR(MakeDatabase(dir / "source"));
  MemoryTransport transport = MakeMemoryTransport();
  ServeOptions serve;
  serve.full_rate = true;
  ServedDatabase database;
  database.name = "db";
  database.directory = dir / "source";
  serve.databases.push_back(database);
  std::unique_ptr<SourceServer> server;
  RETURN_IF_ERROR(MakeServer(serve, std::move(transport.listener),
                             /*make_refresh=*/nullptr, /*make_follow=*/nullptr,
                             &server));
  std::thread thread([&server] { server->Run().PermitUncheckedError(); });
  Status seeded;
  for (const PullMethod method : {PullMethod::kClone, PullMethod::kIngest}) {
    const std::string target =
        dir / (method == PullMethod::kClone ? "clone" : "chunks");
    seeded = Seed(transport.dialer.get(), method, target);
    if (seeded.ok()) {
      seeded = CompareReplica(target);
    }
    if (!seeded.ok()) {
      break;
    }
  }
  server->Stop();
  thread.join();
  return seeded;
}

}  // namespace
}  // namespace sstferry

int main() {
  const rocksdb::Status status = sstferry::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "test_core: %s\n", status.ToString().c_str());
  }
  return status.ok() ? 0 : 1;
}
