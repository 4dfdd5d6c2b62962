#include "tests/support/replica_world.h"

#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "tests/support/catch.h"
#include "tests/support/sample_bytes.h"
#include "tests/support/sample_database.h"

namespace sstferry {

using rocksdb::Status;

ReplicaWorld::ReplicaWorld() {
  SampleShape shape;
  shape.entries = 400;
  MakeSampleDatabase(source(), shape);
}

PullOptions ReplicaWorld::Options() {
  PullOptions options = PullFrom(source(), target());
  options.mode = PullMode::kSwap;
  options.delete_rate_bytes_per_sec = 0;
  options.before_swap = [this](const SwapEvent&) {
    Note("before");
    return Status::OK();
  };
  options.after_swap = [this](const SwapEvent& event) {
    Note(event.exchanged ? "after exchanged" : "after as it was");
    return Status::OK();
  };
  return options;
}

void ReplicaWorld::ChangeSource() {
  const auto entries = EntriesOf(source());
  std::unique_ptr<rocksdb::DB> db;
  REQUIRE_OK(rocksdb::DB::Open(rocksdb::Options(), source(), IntoDb(&db)));
  const rocksdb::WriteOptions write;
  REQUIRE_OK(db->Put(write, "changed", std::to_string(++changes_)));
  int at = 0;
  for (const auto& entry : entries) {
    if (++at % 10 == changes_ % 10) {
      REQUIRE_OK(db->Delete(write, entry.first));
    } else if (at % 10 == (changes_ + 5) % 10) {
      REQUIRE_OK(db->Put(write, entry.first, std::to_string(changes_)));
    }
  }
}

void ReplicaWorld::RemoveSource() { std::filesystem::remove_all(source()); }

void ReplicaWorld::RequireNothingLeft() const {
  for (const std::string& name : NamesOf(dir_.path())) {
    INFO(name);
    REQUIRE((name == "source" || name == "target"));
  }
}

ServingApplication::ServingApplication(const std::string& dir) : dir_(dir) {
  Open();
}

void ServingApplication::Open() {
  REQUIRE_OK(rocksdb::DB::Open(rocksdb::Options(), dir_, IntoDb(&db_)));
}

SwapHook ServingApplication::CloseHook() {
  return [this](const SwapEvent&) {
    Close();
    return Status::OK();
  };
}

SwapHook ServingApplication::OpenHook() {
  return [this](const SwapEvent&) {
    Open();
    return Status::OK();
  };
}

std::string ServingApplication::Get(const std::string& key) const {
  std::string value;
  const Status status = db_->Get(rocksdb::ReadOptions(), key, &value);
  REQUIRE((status.ok() || status.IsNotFound()));
  return value;
}

}  // namespace sstferry
