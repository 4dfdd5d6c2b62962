// Tests that a server survives a request for any kind of database in any mode.
// RocksDB with assertions aborts on calls that a table, an index or a memtable
// does not support.
#include <functional>
#include <string>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/wide_columns.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/named_comparator.h"
#include "tests/support/refreshed.h"
#include "tests/support/serve_process.h"
#include "tests/support/test_db.h"

#if ROCKSDB_MAJOR < 8
namespace rocksdb {
// RocksDB 7's library defines it, but no header declares it.
const Comparator* BytewiseComparatorWithU64Ts();
}  // namespace rocksdb
#endif

namespace sstferry::test::kinds_served_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::ColumnFamilyOptions;

constexpr const char* kStamp = "8 bytes.";

struct ServedKind {
  std::string name;
  std::function<void(const std::string& path)> fill;
  // Chunks cannot represent it: a pull by chunks must be refused before a byte
  // is sent.
  bool clone_only = false;
  std::vector<std::string> selected;  // empty: all families
};

rocksdb::DBOptions Mapped() {
  rocksdb::DBOptions options;
  options.allow_mmap_reads = true;
  options.allow_concurrent_memtable_write = false;
  return options;
}

ColumnFamilyOptions WithPrefix(ColumnFamilyOptions options = Quiet()) {
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(4));
  return options;
}

ColumnFamilyOptions PlainTables(ColumnFamilyOptions options) {
  rocksdb::PlainTableOptions table;
  if (options.prefix_extractor == nullptr) {
    table.hash_table_ratio = 0;  // in total order
  }
  options.table_factory.reset(rocksdb::NewPlainTableFactory(table));
  return options;
}

ColumnFamilyOptions HashIndex() {
  ColumnFamilyOptions options = WithPrefix();
  BlockBasedTableOptions table;
  table.index_type = BlockBasedTableOptions::kHashSearch;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// Makes tables and a WAL with more entries. If `short_key` is set, keys with
// and without a prefix.
void Fill(const std::string& path, const Families& families,
          const std::string& short_key = "",
          const rocksdb::DBOptions& database = {}) {
  OpenDb db(path, families, database);
  for (const auto& family : families) {
    for (int i = 0; i < 300; ++i) {
      db.Put(NumberedKey(i), kStamp, family.name);
    }
  }
  db.Flush();
  for (const auto& family : families) {
    for (int i = 300; i < 320; ++i) {
      db.Put(NumberedKey(i), kStamp, family.name);
    }
    if (!short_key.empty()) {
      db.Put(short_key, kStamp, family.name);
    }
  }
}

// Returns kinds without comparators of an application and without timestamps.
std::vector<ServedKind> OrdinaryKinds() {
  std::vector<ServedKind> kinds;
  const auto add = [&kinds](const std::string& name,
                            std::function<void(const std::string&)> fill) {
    kinds.push_back({name, std::move(fill), false, {}});
  };
  add("blocks", [](const std::string& path) {
    Fill(path, OneFamily(Quiet()), "ab");
  });
  add("plain tables in total order", [](const std::string& path) {
    Fill(path, OneFamily(PlainTables(Quiet())), "ab", Mapped());
  });
  add("plain tables with prefixes", [](const std::string& path) {
    Fill(path, OneFamily(PlainTables(WithPrefix())), "", Mapped());
  });
  add("plain tables, and a key without prefix in the WAL",
      [](const std::string& path) {
        Fill(path, OneFamily(PlainTables(WithPrefix())), "ab", Mapped());
      });
  add("a hash index", [](const std::string& path) {
    Fill(path, OneFamily(HashIndex()));
  });
  add("a hash index, and a key without prefix in the WAL",
      [](const std::string& path) {
        Fill(path, OneFamily(HashIndex()), "ab");
      });
  add("a hash index, and a key without prefix in a table",
      [](const std::string& path) {
        Fill(path, OneFamily(Quiet()), "ab");
        { OpenDb(path, OneFamily(Quiet())).Flush(); }
        OpenDb db(path, OneFamily(HashIndex()));  // OPTIONS name it now
      });
  add("hashed memtables", [](const std::string& path) {
    ColumnFamilyOptions options = WithPrefix();
    options.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory(1000));
    rocksdb::DBOptions one_writer;
    one_writer.allow_concurrent_memtable_write = false;
    Fill(path, OneFamily(options), "", one_writer);
  });
  add("merge operands", [](const std::string& path) {
    ColumnFamilyOptions options = Quiet();
    options.merge_operator = MergeOperatorNamed("stringappend");
    OpenDb db(path, OneFamily(options));
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 100; ++i) db.Merge(NumberedKey(i), kStamp);
      if (round < 2) db.Flush();
    }
  });
  add("blobs", [](const std::string& path) {
    ColumnFamilyOptions options = Quiet();
    options.enable_blob_files = true;
    Fill(path, OneFamily(options));
  });
  add("universal compaction", [](const std::string& path) {
    ColumnFamilyOptions options = Quiet();
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
    Fill(path, OneFamily(options));
  });
  return kinds;
}

std::vector<ServedKind> OddKinds() {
  std::vector<ServedKind> kinds;
  const auto add = [&kinds](const std::string& name,
                            std::function<void(const std::string&)> fill) {
    kinds.push_back({name, std::move(fill), true, {}});
  };
  ColumnFamilyOptions cuckoo = Quiet();
  cuckoo.table_factory.reset(rocksdb::NewCuckooTableFactory());
  add("cuckoo tables", [cuckoo](const std::string& path) {
    Fill(path, OneFamily(cuckoo), "", Mapped());
  });
  add("an order of the application", [](const std::string& path) {
    static const NamedComparator order("an application's own order");
    ColumnFamilyOptions options = Quiet();
    options.comparator = &order;
    Fill(path, OneFamily(options));
  });
  add("timestamps", [](const std::string& path) {
    ColumnFamilyOptions options = Quiet();
    options.comparator = rocksdb::BytewiseComparatorWithU64Ts();
    Families families = OneFamily(Quiet());
    families.push_back({"stamped", options});
    OpenDb db(path, families);
    for (int i = 0; i < 200; ++i) {
      REQUIRE_OK(db->Put({}, db.cf("stamped"), NumberedKey(i), kStamp, "v"));
      if (i == 100) db.Flush();
    }
  });
  // The request does not include the unusual default family.
  kinds.push_back({"cuckoo tables of another family",
                   [cuckoo](const std::string& path) {
                     Families families = OneFamily(cuckoo);
                     families.push_back({"b", Quiet()});
                     Fill(path, families, "", Mapped());
                   },
                   false,
                   {"b"}});
  return kinds;
}

// One server with a database of the kind under test and an ordinary one.
class KindServer {
 public:
  explicit KindServer(const ServedKind& kind) {
    kind.fill(dir / "source");
    Fill(dir / "ordinary", OneFamily(Quiet()));
    server_ = std::make_unique<ServeProcess>(std::vector<std::string>{
        "--db", "kind=" + (dir / "source"), "--db",
        "ordinary=" + (dir / "ordinary")});
    REQUIRE_OK(ParseHostPort(server_->address(), &where_));
  }

  PullOptions Options(const std::string& target) const {
    PullOptions options;
    options.method = PullMethod::kIngest;
    options.source = AddressAt(where_, "kind");
    options.target_dir = dir / target;
    options.snapshot_ttl = std::chrono::seconds(0);
    options.timeouts.retry = std::chrono::milliseconds(0);
    options.min_free_percent = 0;
    return options;
  }

  // Checks that the server still runs and that `status` is a success or a
  // refusal. Returns the end state.
  EndState End(const std::string& what, const rocksdb::Status& status) {
    INFO(what << ": " << status.ToString());
    REQUIRE(server_->process().Wait(std::chrono::milliseconds(0)) == -1);
    const EndState state = EndStateOf(status);
    CHECK((state == EndState::kOk || state == EndState::kRefused ||
           state == EndState::kIncompatible));
    return state;
  }
  EndState Pull(const std::string& what, const PullOptions& options) {
    Summary summary;
    const rocksdb::Status status = MakePull(options)->Run(&summary);
    const EndState state = End(what, status);
    if (state != EndState::kOk && !refuses_late) {
      INFO(what << ": " << status.ToString());
      CHECK(summary.sst_bytes == 0);
    }
    return state;
  }
  EndState Plan(const std::string& what, const PullOptions& options) {
    Summary summary;
    return End(what, MakePlan(options)->Run(&summary));
  }
  EndState Verify(const std::string& target, const Selection& selection) {
    VerifyOptions options;
    options.left = AddressAt(where_, "kind");
    options.right.directory = dir / target;
    options.selection = selection;
    Summary summary;
    return End("verify " + target, MakeVerify(options)->Run(&summary));
  }
  void RequireServesAnother() {
    PullOptions options = Options("another");
    options.source = AddressAt(where_, "ordinary");
    REQUIRE(Pull("an ordinary database", options) == EndState::kOk);
    REQUIRE(EntriesOf(dir / "another", OneFamily()) ==
            EntriesOf(dir / "ordinary", OneFamily()));
  }

  const ScratchDir dir;
  bool refuses_late = false;  // refused only when the data is read

 private:
  std::unique_ptr<ServeProcess> server_;
  HostPort where_;
};

void RequireOutlived(const ServedKind& kind) {
  INFO(kind.name);
  KindServer server(kind);
  const EndState as_chunks =
      kind.clone_only ? EndState::kRefused : EndState::kOk;
  const auto end_of_chunks = [&](EndState state) {
    return state == as_chunks ||
           (kind.clone_only && state == EndState::kIncompatible);
  };
  PullOptions seed = server.Options("seeded");
  seed.method = PullMethod::kIngest;
  seed.selection.families = kind.selected;
  server.Plan("plan of a seed", seed);
  CHECK(end_of_chunks(server.Pull("seed", seed)));
  if (!kind.clone_only) {
    CHECK(server.Verify("seeded", seed.selection) == EndState::kOk);
  }
  PullOptions clone = server.Options("cloned");
  clone.method = PullMethod::kClone;
  server.Plan("plan of a clone", clone);
  CHECK(server.Pull("clone", clone) == EndState::kOk);
  CHECK(server.Verify("cloned", {}) == EndState::kOk);
  for (const std::string target : {"seeded", "cloned"}) {
    if (target == "seeded" && kind.clone_only) {
      continue;
    }
    PullOptions refresh = server.Options(target);
    refresh.mode = PullMode::kRefresh;
    refresh.selection.families = kind.selected;
    refresh.adopt = true;
    server.Plan("plan of a refresh of " + target, refresh);
    server.Pull("refresh of " + target, refresh);
    PullOptions swap = server.Options(target);
    swap.mode = PullMode::kSwap;
    swap.adopt = true;
    if (target == "cloned") {
      swap.method = PullMethod::kClone;
    } else {
      swap.selection.families = kind.selected;
    }
    CHECK(server.Pull("swap of " + target, swap) == EndState::kOk);
  }
  server.RequireServesAnother();
}

TEST_CASE("A server survives every mode of a database that chunks can "
          "represent",
          "[transfer][kinds]") {
  for (const ServedKind& kind : OrdinaryKinds()) {
    RequireOutlived(kind);
  }
}

TEST_CASE("A server survives every mode of a database that chunks cannot "
          "represent",
          "[transfer][kinds]") {
  for (const ServedKind& kind : OddKinds()) {
    RequireOutlived(kind);
  }
}

TEST_CASE("A server survives wide columns and prepared transactions",
          "[transfer][kinds]") {
  const bool wide = GENERATE(true, false);
  const ServedKind kind = {
      wide ? "wide columns" : "prepared transactions",
      [wide](const std::string& path) {
        if (wide) {
          OpenDb db(path, OneFamily(Quiet()));
          const rocksdb::WideColumns columns = {{"", "all"}, {"a", "1"}};
          REQUIRE_OK(db->PutEntity({}, db.cf(), "in tables", columns));
          db.Flush();
          REQUIRE_OK(db->PutEntity({}, db.cf(), "in the WAL", columns));
          return;
        }
        rocksdb::Options options{rocksdb::DBOptions(), Quiet()};
        options.create_if_missing = true;
        rocksdb::TransactionDB* opened = nullptr;
        REQUIRE_OK(
            rocksdb::TransactionDB::Open(options, {}, path, &opened));
        const std::unique_ptr<rocksdb::TransactionDB> db(opened);
        REQUIRE_OK(db->Put({}, "before", "1"));
        const std::unique_ptr<rocksdb::Transaction> prepared(
            db->BeginTransaction({}));
        REQUIRE_OK(prepared->SetName("transfer of money"));
        REQUIRE_OK(prepared->Put("prepared", "2"));
        REQUIRE_OK(prepared->Prepare());
        REQUIRE_OK(db->FlushWAL(true));
      },
      false,
      {}};
  KindServer server(kind);
  server.refuses_late = true;
  for (const PullMethod method : {PullMethod::kIngest, PullMethod::kClone}) {
    PullOptions seed =
        server.Options(method == PullMethod::kIngest ? "seeded" : "cloned");
    seed.method = method;
    server.Plan("plan", seed);
    server.Pull("seed", seed);
    PullOptions refresh = seed;
    refresh.method = PullMethod::kAuto;
    refresh.mode = PullMode::kRefresh;
    refresh.adopt = true;
    server.Pull("refresh", refresh);
    refresh.mode = PullMode::kSwap;
    server.Pull("swap", refresh);
  }
  server.Verify("cloned", {});
  server.RequireServesAnother();
}

TEST_CASE("A replica takes keys outside of its prefix extractor's domain",
          "[transfer][kinds][refresh]") {
  const ScratchDir dir;
  const Families families = OneFamily(HashIndex());
  // A flush by the application would abort this process.
  rocksdb::DBOptions no_flush;
  no_flush.avoid_flush_during_recovery = true;
  Fill(dir / "source", families);
  REQUIRE_OK(Refresh(dir / "source", dir / "target").status);
  Fill(dir / "source", families, "ab");
  OpenDb(dir / "target", families).Put("cd", "foreign");
  PullOptions verified;
  verified.method = PullMethod::kIngest;
  verified.verify = true;
  for (int night = 0; night < 3; ++night) {  // also compacts deltas
    REQUIRE_OK(Refresh(dir / "source", dir / "target", verified).status);
    REQUIRE(EntriesOf(dir / "target", families) ==
            EntriesOf(dir / "source", families));
    OpenDb(dir / "source", families, no_flush)
        .Put("x" + std::to_string(night), "new");
  }
}

}  // namespace
}  // namespace sstferry::test::kinds_served_test
