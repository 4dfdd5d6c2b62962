// The objects of an archive: decoded objects equal the encoded ones, and other
// bytes are refused.
#include "format/archive.h"

#include <rapidcheck.h>
#include <zstd.h>

#include "format/archive_set.h"
#include "format/end_state.h"
#include "format/limits.h"
#include "format/sealed_file.h"
#include "tests/format/allocations.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::archive_test {
namespace {

using rocksdb::Status;

std::string Encoded(const ArchiveSet& set) {
  std::string object;
  REQUIRE_OK(EncodeArchiveSet(set, &object));
  return object;
}

// Encodes and decodes a set, and returns the status of the decoding.
Status Decoded(const ArchiveSet& set) {
  ArchiveSet read;
  return DecodeArchiveSet(Encoded(set), SampleArchiveSet().name, &read);
}

TEST_CASE("A set is decoded as it was encoded", "[format][archive]") {
  const ArchiveSet set = SampleArchiveSet();
  ArchiveSet read;
  REQUIRE_OK(DecodeArchiveSet(Encoded(set), set.name, &read));
  REQUIRE(read == set);
  REQUIRE(read.bytes() == 100'000'100);
}

TEST_CASE("A set that is truncated, longer or has a flipped bit is refused",
          "[format][archive]") {
  const ArchiveSet set = SampleArchiveSet();
  const std::string good = Encoded(set);
  ArchiveSet read;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    INFO("bit " << bit);
    REQUIRE(DecodeArchiveSet(bad, set.name, &read).IsCorruption());
  }
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    REQUIRE(
        DecodeArchiveSet(good.substr(0, bytes), set.name, &read).IsCorruption());
  }
  REQUIRE(DecodeArchiveSet(good + '\0', set.name, &read).IsCorruption());
}

TEST_CASE("An intact set that cannot be a database, or is another, is refused",
          "[format][archive]") {
  const ArchiveSet good = SampleArchiveSet();
  REQUIRE_OK(Decoded(good));
  const auto refuse = [&](const std::function<void(ArchiveSet*)>& change) {
    ArchiveSet bad = good;
    change(&bad);
    REQUIRE(Decoded(bad).IsCorruption());
  };
  refuse([](ArchiveSet* set) { set->name.seconds += 1; });
  refuse([](ArchiveSet* set) { set->files.pop_back(); });  // no MANIFEST
  refuse([](ArchiveSet* set) { set->files.push_back(set->files[0]); });
  refuse([](ArchiveSet* set) { set->files[0].units.pop_back(); });
  refuse([](ArchiveSet* set) { set->files[1].units.push_back({}); });
  refuse([](ArchiveSet* set) { set->files[0].key.bytes -= 1; });
  refuse([](ArchiveSet* set) { set->files[0].key.identity.low ^= 1; });
  refuse([](ArchiveSet* set) { set->files[1].key.set[0] ^= 1; });
  refuse([](ArchiveSet* set) { set->files[1].key.number = 6; });
  refuse([](ArchiveSet* set) { set->unit_bytes *= 2; });
  // Fields of a seal in a set that is not sealed.
  refuse([](ArchiveSet* set) { set->files[0].salt[15] = 1; });
  refuse([](ArchiveSet* set) { set->key_id[0] = 1; });
  refuse([](ArchiveSet* set) { set->seal[31] = 1; });
}

TEST_CASE("A sealed set is decoded as it was encoded", "[format][archive]") {
  ArchiveSet set = SampleArchiveSet();
  set.is_sealed = true;
  set.key_id[0] = 1;
  set.seal[31] = 2;
  set.files[0].salt[15] = 3;
  ArchiveSet read;
  REQUIRE_OK(DecodeArchiveSet(Encoded(set), set.name, &read));
  REQUIRE(read == set);
  REQUIRE(SealedBytes(0) == 32);
  REQUIRE(SealedBytes(1) == 32 + 1 + 16);
  REQUIRE(SealedBytes(65536) == 32 + 65536 + 16);
  REQUIRE(SealedBytes(65537) == 32 + 65537 + 32);
}

TEST_CASE("A set that announces a false size takes no memory",
          "[format][archive]") {
  // A zstd frame whose header announces 128 MiB.
  std::string frame = "\x28\xb5\x2f\xfd";
  frame += '\xa0';  // a single segment, 4 bytes of content size
  frame += std::string("\0\0\0\x08", 4);
  frame += std::string("\x01\0\0", 3);  // an empty last block
  std::string object;
  SealFile("SFASETS1", frame, &object);
  ArchiveSet set;
  REQUIRE(DecodeArchiveSet(object, SampleArchiveSet().name, &set)
              .IsCorruption());
  REQUIRE(set.files.capacity() == 0);
}

TEST_CASE("The small objects of an archive are decoded as they were encoded",
          "[format][archive]") {
  std::string object;
  ArchiveHead head;
  head.archive_id[3] = 7;
  head.created_seconds = 12;
  head.has_if_absent = true;
  head.grace_seconds = 3600;
  EncodeArchiveHead(head, &object);
  ArchiveHead read_head;
  REQUIRE_OK(DecodeArchiveHead(object, &read_head));
  REQUIRE(read_head == head);

  object.clear();
  ArchiveIntent intent;
  intent.begun_seconds = 1;
  intent.renewed_seconds = 2;
  intent.host = "db1";
  intent.uses = {SetId{1}, SetId{2}};
  EncodeArchiveIntent(intent, &object);
  ArchiveIntent read_intent;
  REQUIRE_OK(DecodeArchiveIntent(object, &read_intent));
  REQUIRE(read_intent == intent);

  object.clear();
  EncodeArchiveMark(SampleArchiveMark(), &object);
  ArchiveMark read_mark;
  REQUIRE_OK(DecodeArchiveMark(object, &read_mark));
  REQUIRE(read_mark == SampleArchiveMark());
  REQUIRE(DecodeArchiveHead(object, &read_head).IsCorruption());

  object.clear();
  ArchiveChecked found;
  found.checked_seconds = 9;
  found.faults = {{"files/0a/b", "is not there", 8}};
  EncodeArchiveChecked(found, &object);
  ArchiveChecked checked;
  REQUIRE_OK(DecodeArchiveChecked(object, &checked));
  REQUIRE(checked == found);
  object.clear();
  EncodeArchiveDone({{3, 4}}, &object);
  ArchiveDone done;
  REQUIRE_OK(DecodeArchiveDone(object, &done));
  REQUIRE(done.set == Digest128{3, 4});
}

TEST_CASE("The largest mark and the largest intent can be read",
          "[format][archive]") {
  ArchiveMark mark;
  mark.sets.resize(kMaxMarkSets);
  mark.keys.resize(kMaxMarkKeys);
  mark.segments.resize(kMaxMarkSegments, SampleLogHead().key);
  std::string object;
  EncodeArchiveMark(mark, &object);
  REQUIRE_OK(DecodeArchiveMark(object, &mark));
  ArchiveIntent intent;
  intent.host.assign(kMaxArchiveTextBytes, 'x');
  intent.uses.resize(kMaxIntentSets);
  object.clear();
  EncodeArchiveIntent(intent, &object);
  REQUIRE_OK(DecodeArchiveIntent(object, &intent));
}

TEST_CASE("An archive of a later format is not reported as damage",
          "[format][archive]") {
  ArchiveHead head;
  head.format = kArchiveFormat + 1;
  head.grace_seconds = 3600;
  std::string object;
  EncodeArchiveHead(head, &object);
  REQUIRE(EndStateOf(DecodeArchiveHead(object, &head)) ==
          EndState::kIncompatible);
}

TEST_CASE("Names of sets sort by their times, and only they are parsed",
          "[format][archive]") {
  REQUIRE(ArchiveTimeText(0) == "19700101T000000Z");
  REQUIRE(ArchiveTimeText(1'795'489'200) == "20261124T030000Z");
  REQUIRE(ArchiveTimeText(kMaxArchiveSeconds) == "99991231T235959Z");
  REQUIRE(ArchiveTimeText(951'782'400) == "20000229T000000Z");
  REQUIRE(ArchiveTimeText(4'107'542'400) == "21000301T000000Z");
  const SetName name{1'795'489'200, SetId{1, 0xab}};
  REQUIRE(SetNameText(name) == "20261124T030000Z-01ab000000000000");
  SetName read;
  for (const char* const bad :
       {"", "20261124T030000Z", "20261124T030000Z-01ab00000000000",
        "20261124T030000Z-01AB000000000000", "20261124T030060Z-01ab000000000000",
        "20261324T030000Z-01ab000000000000", "20260230T030000Z-01ab000000000000",
        "2026112 T030000Z-01ab000000000000", "+0261124T030000Z-01ab000000000000",
        "20261124T030000Z_01ab000000000000",
        "20261124T030000Z-01ab000000000000 "}) {
    INFO(bad);
    REQUIRE_FALSE(ParseSetName(bad, &read));
  }
  REQUIRE(rc::check([](const SetId& id) {
    const SetName a{*rc::gen::inRange<uint64_t>(0, kMaxArchiveSeconds), id};
    const SetName b{*rc::gen::inRange<uint64_t>(0, kMaxArchiveSeconds), id};
    SetName back;
    RC_ASSERT(ParseSetName(SetNameText(a), &back));
    RC_ASSERT(back == a);
    RC_ASSERT((SetNameText(a) < SetNameText(b)) == (a < b));
  }));
}

TEST_CASE("Only keys of files that the archive makes are parsed",
          "[format][archive]") {
  for (const ArchivedFile& file : SampleArchiveSet().files) {
    ArchiveKey key;
    REQUIRE(ParseArchiveKey(ArchiveKeyText(file.key), &key));
    REQUIRE(key == file.key);
  }
  const std::string shared =
      "files/00/00000000000000ab00000000000000cd-100000000-0807000000000000";
  REQUIRE(ArchiveKeyText(SampleArchiveSet().files[0].key) == shared);
  REQUIRE(ArchiveKeyText(SampleArchiveSet().files[1].key) ==
          "parts/0102030405060708/MANIFEST-000005");
  ArchiveKey key;
  for (const std::string& bad : std::vector<std::string>{
           "", "files/", "parts/", "ARCHIVE", "files/01" + shared.substr(8),
           shared + "0", shared.substr(0, shared.size() - 1),
           "files/00/00000000000000AB00000000000000cd-1-0807000000000000",
           "files/00/00000000000000ab00000000000000cd-01-0807000000000000",
           "files/00/00000000000000ab00000000000000cd--0807000000000000",
           "parts/0102030405060708/", "parts/0102030405060708/CURRENT",
           "parts/0102030405060708/MANIFEST-5",
           "parts/0102030405060708/../MANIFEST-000005",
           "sets/20261124T030000Z-01ab000000000000"}) {
    INFO(bad);
    REQUIRE_FALSE(ParseArchiveKey(bad, &key));
  }
}

TEST_CASE("Random bytes are refused, or decoded as an object of an archive",
          "[format][archive]") {
  REQUIRE(rc::check([](const std::string& bytes) {
    const SetName name = SampleArchiveSet().name;
    ArchiveSet set;
    DecodeArchiveSet(bytes, name, &set).PermitUncheckedError();
    DecodeArchiveSetRecord(bytes, name, &set).PermitUncheckedError();
    ArchiveKey key;
    if (ParseArchiveKey(bytes, &key)) {
      RC_ASSERT(ArchiveKeyText(key) == bytes);
    }
  }));
}

}  // namespace
}  // namespace sstferry::archive_test
