// tests/golden/first_release contains files and frames of the first release: a
// database, an archive with a set of it, the files of a restore that crashed,
// and the frames of a pull. Every later release must restore the set, resume
// the restore and answer the target. The database and the archive must never be
// changed. To write the journal and the frames again after a deliberate change
// of their format:
//   test_pipeline_archive "[.rewrite]"
#include <atomic>
#include <climits>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "format/coding.h"
#include "format/frame.h"
#include "format/hex.h"
#include "format/messages.h"
#include "pipeline/api/operation_parts.h"
#include "pipeline/archive/restore.h"
#include "sstferry/source.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
#include "tests/support/fake_peer.h"
#include "tests/support/restored.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/test_db.h"

namespace sstferry::test::golden_set_test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Slice;
using rocksdb::Status;

fs::path Folder() {
  return fs::path(SSTFERRY_SOURCE_DIR) / "tests" / "golden" / "first_release";
}

// Returns the database's entries, which are in tables of two levels and a WAL.
std::map<std::string, std::string> GoldenEntries() {
  std::map<std::string, std::string> entries;
  for (int i = 0; i < 60; ++i) {
    entries[NumberedKey(static_cast<uint64_t>(i))] =
        "value " + std::to_string(i * i);
  }
  return entries;
}

// Copies a golden directory and sets the modes that sstferry gives its files. A
// checkout has other modes.
void CopyPrivate(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive);
  fs::permissions(to, fs::perms::owner_all);
  for (const auto& entry : fs::recursive_directory_iterator(to)) {
    fs::permissions(entry.path(), entry.is_directory()
                                      ? fs::perms::owner_all
                                      : fs::perms::owner_read |
                                            fs::perms::owner_write);
  }
}

// A frame of a conversation. Connection 0 is the control connection.
struct Said {
  bool by_target = false;
  size_t connection = 0;
  std::string bytes;
};

FrameHeader HeaderOf(const std::string& bytes) {
  FrameHeader header;
  MustWork(DecodeFrameHeader(bytes, &header));
  return header;
}

// Returns true for frames that depend on time: they are sent by a timer, or
// contain only times.
bool IsTimed(FrameType type) {
  return type == FrameType::kPing || type == FrameType::kPong ||
         type == FrameType::kStats;
}

// Records the frames of both sides, in the order in which the target saw them.
class Record {
 public:
  void Add(bool by_target, size_t connection, const char* bytes, size_t n) {
    const std::lock_guard<std::mutex> lock(mu_);
    std::string& begun = begun_[{by_target, connection}];
    begun.append(bytes, n);
    while (begun.size() >= kFrameHeaderBytes) {
      const size_t size = kFrameHeaderBytes + HeaderOf(begun).payload_bytes;
      if (begun.size() < size) {
        break;
      }
      said_.push_back({by_target, connection, begun.substr(0, size)});
      begun.erase(0, size);
      ends_ += HeaderOf(said_.back().bytes).type == FrameType::kChunkEnd;
    }
  }
  // Returns the number of chunks that arrived completely.
  int ends() {
    const std::lock_guard<std::mutex> lock(mu_);
    return ends_;
  }
  std::vector<Said> Take() {
    const std::lock_guard<std::mutex> lock(mu_);
    return said_;
  }

 private:
  std::mutex mu_;
  std::map<std::pair<bool, size_t>, std::string> begun_;
  std::vector<Said> said_;
  int ends_ = 0;
};

class TappedConnection : public Connection {
 public:
  TappedConnection(std::unique_ptr<Connection> connection, size_t number,
                   int dies_after_chunks, Record* record)
      : connection_(std::move(connection)),
        number_(number),
        dies_after_chunks_(dies_after_chunks),
        record_(record) {}

  Status Read(char* buffer, size_t capacity, const WaitLimit& limit,
              size_t* bytes) override {
    if (record_->ends() >= dies_after_chunks_) {
      return MakeStatus(EndState::kDeadPeer, "as told");
    }
    const Status status = connection_->Read(buffer, capacity, limit, bytes);
    if (status.ok()) {
      record_->Add(false, number_, buffer, *bytes);
    }
    return status;
  }
  Status Write(const Slice* parts, size_t part_count,
               const WaitLimit& limit) override {
    for (size_t i = 0; i < part_count; ++i) {
      record_->Add(true, number_, parts[i].data(), parts[i].size());
    }
    return connection_->Write(parts, part_count, limit);
  }
  void Close() override { connection_->Close(); }
  const std::string& peer() const override { return connection_->peer(); }

 private:
  const std::unique_ptr<Connection> connection_;
  const size_t number_;
  const int dies_after_chunks_;
  Record* const record_;
};

class TappedDialer : public Dialer {
 public:
  TappedDialer(std::unique_ptr<Dialer> dialer, int dies_after_chunks,
               Record* record)
      : dialer_(std::move(dialer)),
        dies_after_chunks_(dies_after_chunks),
        record_(record) {}
  Status Dial(const WaitLimit& limit,
              std::unique_ptr<Connection>* connection) override {
    std::unique_ptr<Connection> dialed;
    RETURN_IF_ERROR(dialer_->Dial(limit, &dialed));
    *connection = std::make_unique<TappedConnection>(
        std::move(dialed), next_++, dies_after_chunks_, record_);
    return Status::OK();
  }
  void Close() override { dialer_->Close(); }
  const std::string& address() const override { return dialer_->address(); }

 private:
  const std::unique_ptr<Dialer> dialer_;
  const int dies_after_chunks_;
  Record* const record_;
  std::atomic<size_t> next_{0};
};

PullOptions CloneInto(const std::string& target_dir) {
  PullOptions pull;
  pull.source.host = "127.0.0.1";
  pull.source.name = "db";
  pull.target_dir = target_dir;
  pull.method = PullMethod::kClone;
  pull.compression = WireCompression::kNone;
  pull.lanes = 1;
  pull.timeouts = TriedOnce(Timeouts());
  return pull;
}

// Restores the golden set, and stops after `chunks` chunks.
Ferried RestoreGolden(const std::string& archive, const std::string& target,
                      int chunks, Record* record) {
  ServeOptions serve;
  ServedDatabase database;
  database.name = "db";
  StoreOptions store;
  store.where.directory = archive;
  REQUIRE_OK(MakeArchiveOrigin(store, "latest", &database.origin));
  serve.databases.push_back(database);
  MemoryTransport transport = MakeMemoryTransport();
  std::unique_ptr<SourceServer> source;
  REQUIRE_OK(MakeSourceServer(serve, std::move(transport.listener), &source));
  std::thread runs([&source] { source->Run().PermitUncheckedError(); });
  TappedDialer dialer(std::move(transport.dialer), chunks, record);
  Ferried restored;
  restored.status =
      MakePullThrough(CloneInto(target), &dialer)->Run(&restored.summary);
  database.origin->Cancel();
  source->Stop();
  runs.join();
  return restored;
}

std::string WriteSaid(const std::vector<Said>& said) {
  std::string text =
      "# > the target says, < the source says; connection, type, frame\n";
  for (const Said& one : said) {
    const FrameType type = HeaderOf(one.bytes).type;
    if (!IsTimed(type)) {
      text += std::string(one.by_target ? "> " : "< ") +
              std::to_string(one.connection) + " " + FrameTypeName(type) +
              " " + ToHex(one.bytes) + "\n";
    }
  }
  return text;
}

std::vector<Said> ReadSaid() {
  std::vector<Said> said;
  std::ifstream file(Folder() / "conversation.txt");
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') {
      continue;
    }
    std::istringstream words(line);
    std::string by;
    std::string type;
    std::string hex;
    Said one;
    words >> by >> one.connection >> type >> hex;
    one.by_target = by == ">";
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      one.bytes += static_cast<char>(HexByte(hex[i], hex[i + 1]).value_or(0));
    }
    REQUIRE(FrameTypeName(HeaderOf(one.bytes).type) == type);
    said.push_back(one);
  }
  return said;
}

}  // namespace

TEST_CASE("The set of the first release is restored as it was pushed",
          "[archive]") {
  const ScratchDir dir;
  CopyPrivate(Folder() / "archive", dir / "archive");
  const Ferried restored = RestoreFrom(dir / "archive", dir / "target");
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(sstferry::EntriesOf(dir / "target") == GoldenEntries());
  // A push into this archive reuses its files.
  CopyPrivate(Folder() / "database", dir / "database");
  PushTo(dir / "archive", dir / "database", "again");
  ArchiveOptions check;
  check.action = ArchiveAction::kCheck;
  check.store.where.directory = dir / "archive";
  check.read_percent = 100;
  ArchiveReport report;
  REQUIRE_OK(MakeArchiveJob(check)->Run(&report));
  REQUIRE(report.sets.size() == 2);
  REQUIRE(report.orphans == 0);
}

TEST_CASE("A restore that crashed in the first release is resumed",
          "[archive]") {
  const ScratchDir dir;
  CopyPrivate(Folder() / "archive", dir / "archive");
  CopyPrivate(Folder() / "unfinished", dir / "target.sstferry");
  fs::create_directories(dir / "target.sstferry/staging");
  fs::create_directories(dir / "target.sstferry/db");
  Record record;
  const Ferried restored =
      RestoreGolden(dir / "archive", dir / "target", INT_MAX, &record);
  INFO(restored.message());
  REQUIRE_OK(restored.status);
  REQUIRE(sstferry::EntriesOf(dir / "target") == GoldenEntries());
  REQUIRE_FALSE(fs::exists(dir / "target.sstferry"));
  // Units that the first run received are not sent again.
  const int rest = record.ends();
  Record whole;
  REQUIRE_OK(
      RestoreGolden(dir / "archive", dir / "whole", INT_MAX, &whole).status);
  REQUIRE(rest < whole.ends());
}

TEST_CASE("A server answers a target of the first release as that release did",
          "[archive]") {
  const ScratchDir dir;
  CopyPrivate(Folder() / "database", dir / "database");
  const TestServer server(ServeSample(dir / "database"));
  TransferId transfer{};
  std::map<size_t, std::unique_ptr<Channel>> channels;
  for (const Said& said : ReadSaid()) {
    const FrameHeader header = HeaderOf(said.bytes);
    std::string payload = said.bytes.substr(kFrameHeaderBytes);
    INFO((said.by_target ? "> " : "< ")
         << said.connection << " " << FrameTypeName(header.type));
    std::unique_ptr<Channel>& channel = channels[said.connection];
    const WaitLimit soon = WaitLimit::Within(std::chrono::seconds(60));
    if (channel == nullptr) {
      std::unique_ptr<Connection> connection;
      REQUIRE_OK(MakeTcpDialer(server.address())->Dial(soon, &connection));
      channel = std::make_unique<Channel>(std::move(connection));
    }
    if (said.by_target) {
      if (header.type == FrameType::kHello && said.connection > 0) {
        // Each transfer has another id.
        Hello hello;
        REQUIRE_OK(Decode(payload, &hello));
        std::string same;
        Encode(hello, &same);
        REQUIRE(same == payload);
        hello.transfer_id = transfer;
        payload.clear();
        Encode(hello, &payload);
      }
      REQUIRE_OK(channel->Send(header.type, payload, soon, header.flags));
      continue;
    }
    Frame frame;
    do {
      REQUIRE_OK(channel->Receive(soon, &frame));
    } while (IsTimed(frame.type));
    REQUIRE(FrameTypeName(frame.type) ==
            std::string(FrameTypeName(header.type)));
    if (frame.type == FrameType::kOpened) {
      Opened opened;
      REQUIRE_OK(Decode(frame.payload, &opened));
      transfer = opened.transfer_id;
    } else if (frame.type == FrameType::kChunkData ||
               frame.type == FrameType::kChunkEnd ||
               frame.type == FrameType::kCloneFiles) {
      REQUIRE(ToHex(frame.payload) == ToHex(payload));
    }
  }
  REQUIRE(channels.size() == 2);
}

TEST_CASE("The journal and the frames of the first release are written again",
          "[.rewrite]") {
  const ScratchDir dir;
  CopyPrivate(Folder() / "archive", dir / "archive");
  CopyPrivate(Folder() / "database", dir / "database");
  fs::remove_all(Folder() / "unfinished");
  {
    Record record;
    REQUIRE_FALSE(
        RestoreGolden(dir / "archive", dir / "target", 2, &record).status.ok());
    fs::copy(dir / "target.sstferry", Folder() / "unfinished",
             fs::copy_options::recursive);
  }
  Record record;
  {
    const TestServer server(ServeSample(dir / "database"));
    TappedDialer dialer(MakeTcpDialer(server.address()), INT_MAX, &record);
    Summary summary;
    REQUIRE_OK(
        MakePullThrough(CloneInto(dir / "clone"), &dialer)->Run(&summary));
  }
  std::ofstream(Folder() / "conversation.txt") << WriteSaid(record.Take());
}

}  // namespace sstferry::test::golden_set_test
