// Sealed sets: any change by the store is detected, and the store cannot read
// the contents.
#include "pipeline/archive/seal.h"

#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <random>

#include "format/end_state.h"
#include "format/part.h"
#include "pipeline/archive/archive.h"
#include "pipeline/archive/check.h"
#include "pipeline/archive/push.h"
#include "tests/pipeline/archive/fake_set_source.h"
#include "tests/support/catch.h"
#include "tests/support/memory_store.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::seal_test {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

SealKey KeyOf(uint8_t byte) {
  SealKey::Bytes bytes;
  bytes.fill(byte);
  return SealKey(bytes);
}

std::string RandomBytes(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& byte : text) {
    byte = static_cast<char>(random());
  }
  return text;
}

// A file in memory. The test may change it between reads.
class TextFile : public SetFile {
 public:
  explicit TextFile(const std::string* text) : text_(text) {}
  uint64_t size() const override { return text_->size(); }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string*,
                            Slice* out) const override {
    *out = Slice(text_->data() + offset, n);
    return Status::OK();
  }
  [[nodiscard]] Status Digest(uint64_t, uint64_t, FileDigests*) override {
    return Status::OK();
  }

 private:
  const std::string* const text_;
};

// A store with a sealed file of these bytes.
struct World {
  explicit World(std::string bytes) : text(std::move(bytes)) {
    file.file.kind = CloneFileKind::kTable;
    file.file.number = 7;
    file.file.bytes = text.size();
    file.file.identity = {1, 2};
    file.key.is_shared = true;
    file.key.identity = file.file.identity;
    file.key.bytes = text.size();
    file.salt = RandomSealSalt();
    sealed = Open();
    FileDigests digests;
    REQUIRE_OK(ForEachPiece(sealed->size(), [&](uint64_t at, uint64_t count) {
      return sealed->Digest(at, count, &digests);
    }));
    file.units = digests.units;
    file.sha256 = Sha256OfPieces(digests.pieces);
    std::string scratch;
    Slice out;
    REQUIRE_OK(sealed->Read(0, sealed->size(), &scratch, &out));
    object = out.ToString();
    REQUIRE(Sha256Of(object) == file.sha256);
    server.Overwrite(ArchiveKeyText(file.key), object);
    client = server.NewClient();
  }
  std::unique_ptr<SetFile> Open() {
    return SealFileOf(key, file.salt, ArchiveKeyText(file.key), file.file,
                      kArchiveUnitBytes, std::make_unique<TextFile>(&text));
  }
  StoreResult Get(uint64_t offset, uint64_t bytes, std::string* plain) {
    plain->clear();
    return GetSealed(client.get(), key, SealedObjectOf(file), offset, bytes,
                     [plain](const Slice& piece) {
                       plain->append(piece.data(), piece.size());
                       return Status::OK();
                     });
  }

  std::string text;
  MemoryStore server;
  SealKey key = KeyOf(1);
  ArchivedFile file;
  std::unique_ptr<SetFile> sealed;
  std::string object;
  std::unique_ptr<ObjectStore> client;
};

TEST_CASE("Any range of a sealed file is read back", "[archive][seal]") {
  for (const size_t bytes :
       {0ul, 1ul, 65535ul, 65536ul, 65537ul, 300000ul, 1u << 20 | 1ul}) {
    INFO(bytes);
    World world(RandomBytes(bytes, 1));
    REQUIRE(world.object.size() == SealedBytes(bytes));
    std::string plain;
    REQUIRE_OK(world.Get(0, bytes, &plain).status);
    REQUIRE(plain == world.text);
    std::vector<Digest128> units;
    std::vector<Part> cut;
    REQUIRE_OK(CutIntoUnits({world.file.file}, kArchiveUnitBytes, &cut));
    for (const Part& unit : cut) {
      units.push_back(
          DigestOf(Slice(world.text.data() + unit.offset, unit.bytes)));
    }
    REQUIRE(world.file.units == units);
    std::mt19937 random(2);
    for (int i = 0; i < 50 && bytes > 0; ++i) {
      const uint64_t begin = random() % bytes;
      const uint64_t count = 1 + random() % (bytes - begin);
      REQUIRE_OK(world.Get(begin, count, &plain).status);
      REQUIRE(plain == world.text.substr(begin, count));
    }
  }
}

TEST_CASE("A sealed object does not contain its text, and differs each time",
          "[archive][seal]") {
  World world(std::string(200000, 'a'));
  REQUIRE(world.object.find(std::string(8, 'a')) == std::string::npos);
  const std::string first = world.object.substr(32, 65536);
  REQUIRE(first != world.object.substr(32 + 65552, 65536));
  World other(std::string(200000, 'a'));
  REQUIRE(other.object.substr(32) != world.object.substr(32));
}

TEST_CASE("A sealed object that was changed in any way is damaged",
          "[archive][seal]") {
  World world(RandomBytes(3 * 65536 + 100, 3));
  const auto refuse = [&world](const std::string& changed) {
    world.server.Overwrite(ArchiveKeyText(world.file.key), changed);
    std::string plain;
    REQUIRE(world.Get(0, world.text.size(), &plain).code ==
            StoreCode::kDamaged);
    REQUIRE(Slice(world.text).starts_with(plain));
  };
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    std::string changed = world.object;
    changed[32 + random() % (changed.size() - 32)] ^=
        static_cast<char>(1 << random() % 8);
    refuse(changed);
  }
  constexpr size_t kChunk = 65536 + 16;
  std::string swapped = world.object;
  swapped.replace(32, kChunk, world.object.substr(32 + kChunk, kChunk));
  swapped.replace(32 + kChunk, kChunk, world.object.substr(32, kChunk));
  refuse(swapped);
  std::string repeated = world.object;
  repeated.replace(32 + kChunk, kChunk, world.object.substr(32, kChunk));
  refuse(repeated);
  refuse(world.object.substr(0, 32 + 3 * kChunk));
  refuse(world.object.substr(0, world.object.size() - 1));
  // The object of another file, or of the same file under another name.
  World other(world.text);
  refuse(other.object);
  std::string plain;
  world.server.Overwrite(ArchiveKeyText(world.file.key), world.object);
  world.file.key.set[0] ^= 1;
  world.server.Overwrite(ArchiveKeyText(world.file.key), world.object);
  REQUIRE(world.Get(0, 10, &plain).code == StoreCode::kDamaged);
}

TEST_CASE("Bytes that differ when they are read again are not sealed again",
          "[archive][seal]") {
  World world(RandomBytes(200000, 5));
  const std::unique_ptr<SetFile> file = world.Open();
  FileDigests digests;
  REQUIRE_OK(file->Digest(0, file->size(), &digests));
  world.text[70000] ^= 1;
  std::string scratch;
  Slice out;
  REQUIRE_OK(file->Read(0, 65536, &scratch, &out));
  const Status changed = file->Read(32 + 65552, 65536, &scratch, &out);
  REQUIRE(EndStateOf(changed) == EndState::kSourceError);
}

TEST_CASE("A sealed record is accepted only with its key and without changes",
          "[archive][seal]") {
  const SealKey key = KeyOf(1);
  ArchiveSet set = FakeSetSource({1, 2}, "point").set();
  set.files[0].units = {{1, 2}, {3, 4}};
  set.files[1].units = {{1, 2}};
  set.files[1].salt[0] = 1;
  const ArchiveSet plain = set;
  key.Seal(&set);
  REQUIRE(set.is_sealed);
  REQUIRE(set.key_id == key.id());
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE(set.files[i].units != plain.files[i].units);
  }
  REQUIRE(set.files[0].units[0] != set.files[1].units[0]);

  ArchiveSet opened = set;
  REQUIRE_OK(key.Unseal(&opened));
  REQUIRE(opened.files == plain.files);

  EndState expected = EndState::kRefused;  // not damaged
  const auto refuse = [&](const std::function<void(ArchiveSet*)>& change) {
    ArchiveSet changed = set;
    change(&changed);
    REQUIRE(EndStateOf(key.Unseal(&changed)) == expected);
  };
  refuse([](ArchiveSet* bad) { bad->is_sealed = false; });
  refuse([](ArchiveSet* bad) { bad->key_id[0] ^= 1; });
  refuse([](ArchiveSet* bad) { *bad = ArchiveSet(); });
  expected = EndState::kCorrupt;
  refuse([](ArchiveSet* bad) { bad->seal[31] ^= 1; });
  refuse([](ArchiveSet* bad) { bad->label = "another"; });
  refuse([](ArchiveSet* bad) { bad->name.seconds += 1; });
  refuse([](ArchiveSet* bad) { bad->files[0].units[1].low ^= 1; });
  refuse([](ArchiveSet* bad) { bad->files[0].salt[3] ^= 1; });
  refuse([](ArchiveSet* bad) { std::swap(bad->files[0], bad->files[1]); });
  ArchiveSet other = set;
  REQUIRE(EndStateOf(KeyOf(2).Unseal(&other)) == EndState::kRefused);
}

TEST_CASE("A key file is accepted only if no other account can read it",
          "[archive][seal]") {
  const ScratchDir dir;
  const std::string path = dir / "key";
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    REQUIRE(chmod(path.c_str(), mode) == 0);
  };
  std::shared_ptr<SealKey> key;
  const std::string digits(64, 'a');
  write(digits + "\n", 0600);
  REQUIRE_OK(SealKey::Read(path, &key));
  REQUIRE(key->id() == KeyOf(0xaa).id());
  const auto refuse = [&](const std::string& text, mode_t mode) {
    write(text, mode);
    INFO(text);
    REQUIRE(EndStateOf(SealKey::Read(path, &key)) == EndState::kRefused);
  };
  refuse(digits, 0640);
  refuse(digits, 0604);
  refuse(digits, 0620);
  refuse("", 0600);
  refuse(digits + "a", 0600);
  refuse(digits.substr(1), 0600);
  refuse(digits.substr(1) + "g", 0600);
  refuse(digits + "\n\n", 0600);
  REQUIRE(EndStateOf(SealKey::Read(dir / "none", &key)) == EndState::kRefused);
  REQUIRE(EndStateOf(SealKey::Read(dir.path(), &key)) == EndState::kRefused);
}

// --- Sealed sets in an archive ----------------------------------------------

class SealedArchive {
 public:
  SealedArchive() {
    ArchiveHead head;
    head.grace_seconds = kMinGraceSeconds;
    head.has_if_absent = true;
    std::string bytes;
    EncodeArchiveHead(head, &bytes);
    server.Overwrite(kArchiveHeadKey, bytes);
  }
  Status Push(const std::vector<int>& tables, const SealKey* key,
              PushSummary* summary, StoreHook hook = nullptr) {
    const std::unique_ptr<ObjectStore> client = server.NewClient(hook);
    FakeSetSource source(tables, "point " + std::to_string(++points));
    PushOptions options;
    options.lanes = 1;
    return PushSet(Archive(client.get(), key), &source, options, summary);
  }
  Status Check(const SealKey* key, CheckSummary* summary) {
    const std::unique_ptr<ObjectStore> client = server.NewClient();
    CheckOptions options;
    options.read_percent = 100;
    return CheckArchive(Archive(client.get(), key), options, summary);
  }

  MemoryStore server;
  int points = 0;
};

TEST_CASE("A sealed set can be checked with and without its key",
          "[archive][seal]") {
  SealedArchive archive;
  const SealKey key = KeyOf(1);
  const SealKey other = KeyOf(2);
  PushSummary summary;
  REQUIRE_OK(archive.Push({1, 2}, &key, &summary));
  REQUIRE_OK(archive.Push({1, 2, 3}, &key, &summary));
  REQUIRE(summary.reused_files == 2);
  for (const auto& [name, bytes] : archive.server.Objects()) {
    REQUIRE(bytes.find("table 1") == std::string::npos);
    REQUIRE(bytes.find("point 1") == std::string::npos);
  }
  CheckSummary checked;
  REQUIRE_OK(archive.Check(nullptr, &checked));
  REQUIRE(checked.sets.size() == 2);
  REQUIRE(checked.sets[0].is_sealed);
  REQUIRE(checked.read_files == 5);
  REQUIRE_OK(archive.Check(&key, &checked));
  REQUIRE(checked.sets[1].state == SetState::kWhole);
  REQUIRE(EndStateOf(archive.Check(&other, &checked)) == EndState::kRefused);
  REQUIRE(checked.sets[1].state == SetState::kOtherKey);
  REQUIRE(checked.sets[1].files == 4);

  // Sealed files are not reused by a push with another key or without one.
  REQUIRE_OK(archive.Push({1, 2, 3}, &other, &summary));
  REQUIRE(summary.reused_files == 0);
  // Nor are they called damaged.
  REQUIRE_FALSE(summary.notes.empty());
  for (const std::string& note : summary.notes) {
    INFO(note);
    REQUIRE(note.find("damaged") == std::string::npos);
  }
  REQUIRE_OK(archive.Push({1, 2, 3}, nullptr, &summary));
  REQUIRE(summary.reused_files == 0);
  REQUIRE_OK(archive.Check(nullptr, &checked));
  // A check with a key refuses sets that are not sealed.
  REQUIRE(EndStateOf(archive.Check(&key, &checked)) == EndState::kRefused);
  REQUIRE(checked.sets[2].state == SetState::kOtherKey);
  REQUIRE(checked.sets[3].state == SetState::kUnsealed);
  size_t whole = 0;
  for (const ListedSet& set : checked.sets) {
    whole += set.state == SetState::kWhole ? 1 : 0;
  }
  REQUIRE(whole == 2);

  // A check without the key detects any changed object.
  for (const auto& [name, bytes] : archive.server.Objects()) {
    if (name.starts_with(kArchiveFilesPrefix)) {
      std::string changed = bytes;
      changed.back() ^= 1;
      archive.server.Overwrite(name, changed);
      REQUIRE(EndStateOf(archive.Check(nullptr, &checked)) ==
              EndState::kCorrupt);
      archive.server.Overwrite(name, bytes);
    }
  }
}

TEST_CASE("Files of a sealed set are read only with its key",
          "[archive][seal]") {
  SealedArchive archive;
  const SealKey key = KeyOf(1);
  PushSummary summary;
  REQUIRE_OK(archive.Push({1}, &key, &summary));
  const std::unique_ptr<ObjectStore> client = archive.server.NewClient();
  const FoundSet found{summary.name, 0, true};
  std::optional<ArchiveSet> set;
  const Archive locked(client.get());
  REQUIRE_OK(locked.ReadSet(found, &set));
  REQUIRE(EndStateOf(locked.CheckReadable(*set)) == EndState::kRefused);
  const Archive opened(client.get(), &key);
  REQUIRE_OK(opened.ReadSet(found, &set));
  REQUIRE_OK(opened.CheckReadable(*set));
  std::string text;
  const ArchivedFile& file = set->files[0];
  REQUIRE_OK(opened.ReadFile(*set, file, 2, file.file.bytes - 2,
                             [&](const Slice& piece) {
                               text.append(piece.data(), piece.size());
                               return Status::OK();
                             })
                 .status);
  REQUIRE(text == "ble 1");
  REQUIRE(file.units.size() == 1);
  REQUIRE(file.units[0] == DigestOf("table 1"));

  // With a key, a set that anybody could have put is not believed.
  REQUIRE_OK(archive.Push({1}, nullptr, &summary));
  const FoundSet unsealed{summary.name, 0, true};
  REQUIRE_OK(locked.ReadSet(unsealed, &set));
  const Status refused = opened.ReadSet(unsealed, &set);
  REQUIRE(EndStateOf(refused) == EndState::kRefused);
  REQUIRE(Archive::IsForeign(refused, set));
}

TEST_CASE("Files of a sealed push that crashed are reused by the next push, "
          "unless they are cold",
          "[archive][seal]") {
  const bool has_cold = GENERATE(false, true);
  SealedArchive archive;
  const SealKey key = KeyOf(1);
  PushSummary summary;
  bool dead = false;
  const Status died = archive.Push(
      {1, 2, 3}, &key, &summary, [&dead](StoreCall* call) {
        dead = dead || (call->kind == StoreCallKind::kPut &&
                        call->key.starts_with(kArchivePartsPrefix));
        return dead ? CallFate::kNeverArrives : CallFate::kArrives;
      });
  REQUIRE_FALSE(died.ok());
  for (const auto& [name, bytes] : archive.server.Objects()) {
    if (has_cold && name.starts_with(kArchiveFilesPrefix)) {
      archive.server.rules().hidden = {name};
    }
  }
  REQUIRE_OK(archive.Push({1, 2, 3}, &key, &summary));
  REQUIRE(summary.reused_files == (has_cold ? 2 : 3));
  REQUIRE(summary.uploaded_files == (has_cold ? 2 : 1));
  CheckSummary checked;
  REQUIRE_OK(archive.Check(&key, &checked));
  REQUIRE_OK(archive.Check(nullptr, &checked));
}

}  // namespace
}  // namespace sstferry::seal_test
