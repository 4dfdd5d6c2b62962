#include "tests/format/samples.h"

#include "format/coding.h"
#include "format/digest.h"
#include "format/sealed_file.h"
#include "format/stream_frame.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

TransferId SampleId() {
  TransferId id;
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<uint8_t>(0xa0 + i);
  }
  return id;
}

const std::string kNulKey("\0\0", 2);

template <typename Message>
Status DecodeAs(const Slice& payload) {
  Message message;
  return Decode(payload, &message);
}

template <typename Message>
void AppendRecord(JournalRecordType type, const Message& message,
                  std::string* journal) {
  AppendJournalRecord(type, Encode(message), journal->size(), journal);
}

}  // namespace

Hello SampleHello() {
  Hello m;
  m.oldest_version = 1;
  m.newest_version = 2;
  m.features = 0x8000000000000001u;
  m.kind = ConnectionKind::kLane;
  m.transfer_id = SampleId();
  m.lane = 3;
  m.software = "sstferry 0.1.0";
  m.rocksdb_version = "7.8.3";
  m.max_format_version = 5;
  return m;
}

HelloAck SampleHelloAck() {
  HelloAck m;
  m.version = 2;
  m.features = 1;
  m.software = "sstferry 0.1.0";
  m.rocksdb_version = "9.10.0";
  return m;
}

End SampleEnd() {
  return End{EndState::kNoSpace, "staging: disk full", "/data/x.sst"};
}

ListRequest SampleListRequest() {
  ListRequest m;
  m.known = {"orders", "app/0_1"};
  return m;
}

ListReply SampleListReply() {
  ListReply m;
  m.names = {"orders", "users.v2"};
  m.file_system = 77;
  m.is_complete = true;
  return m;
}

OpenRequest SampleOpenRequest() {
  OpenRequest m;
  m.database = "orders";
  m.purpose = Purpose::kVerify;
  m.families = {"default", "index"};
  m.interval.begin = "";
  m.interval.end = std::string("\xff\xff", 2);
  m.lanes = 4;
  m.chunk_bytes = 64000000;
  m.application = "8.11.4";
  m.max_rate_bytes_per_sec = 20000000;
  m.full_rate = true;
  m.compression = WireCompression::kZstd;
  m.compression_level = 3;
  m.snapshot_use = SnapshotUse::kShare;
  m.named_transfer = SampleId();
  m.mode = TransferMode::kRefresh;
  m.replica_families = {"default", "index"};
  m.waited_seconds = 61;
  m.newer_than[2] = 0x77;
  m.target = "db2:/data/users";
  return m;
}

Opened SampleOpened() {
  Opened m;
  m.transfer_id = SampleId();
  m.source_database_id = "7c6a32b2-8e1f";
  m.snapshot_sequence = 123456789;
  m.lanes = 2;
  m.family_count = 2;
  m.database_options = {{"max_open_files", "-1"}, {"wal_ttl", ""}};
  m.notes = {"unflushed writes without WAL are not in it"};
  m.snapshot_micros = 2500;
  m.plan_micros = 1500;
  m.places = {{{1, 2}, true}, {{3, 4}, false}};
  m.taken_seconds = 1'700'000'000;
  m.application = "8.11.4";
  m.written_by = "9.10";
  m.opens_since = "8.6";
  m.opens_because = "format_version 6";
  m.unlogged_since_seconds = 1'699'999'000;
  m.other_files = {{"config.json", 340, KeptBack::kNo},
                   {"core.17", 1u << 30, KeptBack::kSecret}};
  return m;
}

Family SampleFamily() {
  Family m;
  m.index = 1;
  m.description.name = "index";
  m.description.comparator = "leveldb.BytewiseComparator";
  m.description.merge_operator = "uint64add";
  m.description.table_factory = "BlockBasedTable";
  m.description.options = {{"compression", "kZSTD"}};
  m.description.table_options = {{"block_size", "4096"}, {"x", "y"}};
  m.format_version = 5;
  m.estimated_entries = 1000;
  m.estimated_bytes = 272000;
  m.source_files = 7;
  return m;
}

Part KeyPart(uint32_t id, uint32_t family, const KeyInterval& interval,
             uint64_t bytes, PartNeed need) {
  Part part;
  part.id = id;
  part.kind = need == PartNeed::kCompare ? PartKind::kDelta
                                         : PartKind::kRebuilt;
  part.need = need;
  part.family = family;
  part.interval = interval;
  part.bytes = bytes;
  return part;
}

Parts SampleParts() {
  Parts m;
  m.parts.push_back(KeyPart(0, 0, {std::nullopt, "m"}, 1000));
  m.parts.push_back(KeyPart(1, 0, {"m", std::nullopt}, 2000));
  m.parts.push_back(KeyPart(2, 1, {kNulKey, ""}, 3000, PartNeed::kCompare));
  Part unit;
  unit.id = 3;
  unit.kind = PartKind::kUnit;
  unit.file = 4;
  unit.offset = 1 << 20;
  unit.bytes = 5000;
  m.parts.push_back(unit);
  return m;
}

PlanItems SamplePlanItems() {
  PlanItems m;
  m.items.push_back(PlanItem{1, {"a", "b"}, "000012.sst", 4096,
                             PlanAction::kDelta, "if digests differ"});
  m.items.push_back(PlanItem{});
  return m;
}

PlanEnd SamplePlanEnd() { return PlanEnd{3, 6000}; }
Ping SamplePing() { return Ping{0x0123456789abcdefu}; }
Stats SampleStats() { return Stats{1, 2, 3, 4, 5, 6, 7, 8}; }

Finish SampleFinish() {
  return Finish{{{1, 2, 3, 4}, {5, 6, 7, 8}}, SampleStats()};
}

Received SampleReceived() {
  Received m;
  m.parts.push_back({7, {3, 300, 81600, 70000}});
  m.parts.push_back({9, Totals{}});
  return m;
}

StatusRequest SampleStatusRequest() { return StatusRequest{"orders"}; }

PinRequest SamplePinRequest() { return PinRequest{{"app/0_1", "orders"}}; }

PinReply SamplePinReply() {
  return PinReply{SampleId(), {{1000, 1250, 1'700'000'000, ""},
                                 {0, 0, 0, "no MANIFEST"}}};
}

PinEnd SamplePinEnd() { return PinEnd{SampleId(), "app/0_1"}; }

FactsRequest SampleFactsRequest() {
  return FactsRequest{"orders", {"default", "users"}, true, "8.11.4"};
}

FactsReply SampleFactsReply() {
  return FactsReply{2,  17,          1'000'000'007, 3'000'000,
                    90, 800'000'000, "5788e949",    "no MANIFEST",
                    "blob_dir"};
}

FollowRequest SampleFollowRequest() {
  return FollowRequest{"orders",
                       {"id of the source", 5, 4711, 4800, {8, 10}, 12, 65536,
                        {7, 9}},
                       true, 1000, "db2:/srv/orders"};
}

WalBytes SampleWalBytes() {
  return WalBytes{12, 65536, "whole records"};
}

FollowEnd SampleFollowEnd() {
  return FollowEnd{CutReason::kBarrier, "tables added, none removed", 3'000'000,
                   1'700'000'000'000'000, 4096, true, SourceProcess::kOpen,
                   {4711, {7, 9}}};
}

OtherFileRequest SampleOtherFileRequest() {
  return OtherFileRequest{"config.json", 131072};
}

OtherFilePart SampleOtherFilePart() {
  return OtherFilePart{"", 131082, {7, 9}, true, "{\"raw\": 1}"};
}

StatusReply SampleStatusReply() {
  RetainedSnapshot received;
  received.transfer_id = SampleId();
  received.database = "orders";
  received.snapshot_sequence = 123456789;
  received.age_seconds = 61;
  received.ttl_left_seconds = 3539;
  received.readers = 1;
  received.pinned_bytes = 5000000000;
  received.target = "db2:/data/users (CN=db2)";
  return StatusReply{{received},
                     {{"orders", "db2:/srv/orders (CN=db2)", 65536, 12,
                       8'000'000, 3, CutReason::kBarrier}}};
}

CloneSet SampleCloneSet() { return CloneSet{1 << 20, 2, {11, 12}}; }

CloneFiles SampleCloneFiles() {
  return CloneFiles{{{CloneFileKind::kManifest, 4, 300, 290},
                     {CloneFileKind::kTable, 9, 4096, 0, {11, 12}, true},
                     {CloneFileKind::kBlob, 12, 5'000'000'000, 0, {13, 14},
                      false, 1'700'000'000'123'456'789}}};
}

Compress SampleCompress() { return Compress{true}; }

PartRequest SamplePartRequest() {
  return PartRequest{7, kNulKey, {2, 200, 54400, 46000}, 1048576, 1u << 20};
}

ChunkAck SampleChunkAck() { return ChunkAck{7, 2}; }

ChunkBegin SampleChunkBegin() {
  return ChunkBegin{7, 2, PartKind::kDelta, 65536, 4096};
}

ChunkEnd SampleChunkEnd() {
  return ChunkEnd{7, 2, 65536, 100, 1600, 25600, "", "\xff",
                  {0x1122334455667788u, 0x99aabbccddeeff00u}};
}

PartEnd SamplePartEnd() {
  return PartEnd{7, {3, 300, 81600, 70000}, {8, 9}};
}

UnitDigestRequest SampleUnitDigestRequest() { return UnitDigestRequest{7}; }

FileDigestRequest SampleFileDigestRequest() {
  return FileDigestRequest{3, 64u << 20, 70000};
}

FileDigestReply SampleFileDigestReply() {
  FileDigestReply m;
  m.sha256[0] = 0xab;
  m.sha256[31] = 0xcd;
  m.units = {{1, 2}, {3, 4}};
  return m;
}

Busy SampleBusy() { return Busy{7000}; }

GroupRequest SampleGroupRequest() { return GroupRequest{7, 6}; }

GroupReply SampleGroupReply() {
  return GroupReply{3, 816, {1, 2}, {{3, 4}, {5, 6}}};
}

SiftRequest SampleSiftRequest() {
  return SiftRequest{7, {0, 5}, std::string("\x01\x00\x02\xff\xfe\xfd", 6)};
}

SiftReply SampleSiftReply() { return SiftReply{{1, 2}, {0, 70'000}}; }

DeltaRequest SampleDeltaRequest() {
  return DeltaRequest{7, true, {2, 200, 54400, 46000}, {"k", std::nullopt},
                      DeltaBasis::kOutermost, 10'000, {0, 5},
                      {{"k1", {1, 2}}, {kNulKey, {3, 4}, 1}}, true};
}

DigestRequest SampleDigestRequest() {
  return DigestRequest{1, {"a", std::nullopt}};
}
DigestReply SampleDigestReply() { return DigestReply{10, 2720, {1, 2}}; }

EntriesRequest SampleEntriesRequest() {
  return EntriesRequest{1, {std::nullopt, "z"}, ""};
}

EntriesReply SampleEntriesReply() {
  return EntriesReply{{{"", 0, {1, 2}}, {kNulKey, 5, {3, 4}}}, true};
}

JournalTransfer SampleJournalTransfer() {
  JournalTransfer m;
  m.transfer_id = SampleId();
  m.source = "sst://10.0.0.1:7420/orders";
  m.source_database_id = "7c6a32b2-8e1f";
  m.snapshot_sequence = 123456789;
  m.mode = "pull";
  m.families = {"default", "index"};
  m.interval = {"a", std::nullopt};
  m.chunk_bytes = 64'000'000;
  m.application = "8.11.4";
  m.durable = false;
  m.boot_id = "d0c9e9a4-5b2f";
  m.command_line = "sstferry pull sst://10.0.0.1/orders '/data/my orders'";
  return m;
}

JournalPlan SampleJournalPlan() {
  return JournalPlan{FrameType::kParts, 0, Encode(SampleParts())};
}

JournalChunk SampleJournalChunk() {
  return JournalChunk{SampleChunkEnd(), PartKind::kDelta, "db-id",
                      "SESSIONID0123456789", 12, true};
}

JournalChunk SampleJournalUnit() {
  ChunkEnd end;
  end.part_id = 2;
  end.file_bytes = 1 << 20;
  end.digest = {3, 5};
  return JournalChunk{end, PartKind::kUnit, "", "", 0, false, {6, 8}};
}

JournalIngested SampleJournalIngested() { return JournalIngested{2, 1}; }

JournalTargetFiles SampleJournalTargetFiles() {
  return JournalTargetFiles{"target-id", {4, 7}};
}

JournalPartDone SampleJournalPartDone() {
  return JournalPartDone{2, {3, 300, 81600, 70000}};
}
JournalComplete SampleJournalComplete() {
  return JournalComplete{{4, 400, 91600, 80000}};
}

std::string MakeFrame(FrameType type, uint64_t sequence,
                      const std::string& payload, uint16_t flags) {
  std::string frame(kFrameHeaderBytes, '\0');
  const Slice part(payload);
  EncodeFrameHeader(type, sequence, &part, 1, frame.data(), nullptr, flags);
  return frame + payload;
}

std::string SampleCompressedPayload() {
  // The bytes of a zstd frame: the magic; a flag byte (single segment, content
  // size in one byte); the size 100; a block header (last block, a run of 100
  // bytes); the repeated byte.
  const unsigned char zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20,
                                100,  0x23, 0x03, 0x00, 'a'};
  std::string payload;
  PutFixed32(&payload, 100);
  PutFixed64(&payload, Digest64(std::string(100, 'a')));
  payload.append(reinterpret_cast<const char*>(zstd), sizeof(zstd));
  return payload;
}

std::string SampleCompressedFrame() {
  return MakeFrame(FrameType::kChunkData, 18, SampleCompressedPayload(),
                   kFrameFlagZstd);
}

std::string SampleStream() {
  std::string stream(kStreamHelloBytes, '\0');
  EncodeStreamHello({1u << 20}, stream.data());
  const auto add = [&stream](const StreamFrame& frame,
                             const std::string& payload) {
    std::string header(kStreamFrameHeaderBytes, '\0');
    EncodeStreamFrame(frame, header.data());
    stream += header + payload;
  };
  add({StreamFrameKind::kOpen, 1, 0}, "");
  add({StreamFrameKind::kData, 1, 5}, "bytes");
  add({StreamFrameKind::kCredit, 1, 256u << 10}, "");
  add({StreamFrameKind::kClose, 1, 0}, "");
  return stream;
}

std::vector<SampleFrame> SampleFrames() {
  return {
      {FrameType::kHello, Encode(SampleHello())},
      {FrameType::kHelloAck, Encode(SampleHelloAck())},
      {FrameType::kEnd, Encode(SampleEnd())},
      {FrameType::kListRequest, Encode(SampleListRequest())},
      {FrameType::kListReply, Encode(SampleListReply())},
      {FrameType::kOpenRequest, Encode(SampleOpenRequest())},
      {FrameType::kOpened, Encode(SampleOpened())},
      {FrameType::kFamily, Encode(SampleFamily())},
      {FrameType::kParts, Encode(SampleParts())},
      {FrameType::kPlanItems, Encode(SamplePlanItems())},
      {FrameType::kPlanEnd, Encode(SamplePlanEnd())},
      {FrameType::kPing, Encode(SamplePing())},
      {FrameType::kPong, Encode(SamplePing())},
      {FrameType::kStats, Encode(SampleStats())},
      {FrameType::kFinish, Encode(SampleFinish())},
      {FrameType::kFinished, Encode(SampleFinish())},
      {FrameType::kCompress, Encode(SampleCompress())},
      {FrameType::kReceived, Encode(SampleReceived())},
      {FrameType::kStatusRequest, Encode(SampleStatusRequest())},
      {FrameType::kStatusReply, Encode(SampleStatusReply())},
      {FrameType::kPartRequest, Encode(SamplePartRequest())},
      {FrameType::kChunkBegin, Encode(SampleChunkBegin())},
      {FrameType::kChunkData, "raw bytes of an SST file"},
      {FrameType::kChunkEnd, Encode(SampleChunkEnd())},
      {FrameType::kPartEnd, Encode(SamplePartEnd())},
      {FrameType::kDigestRequest, Encode(SampleDigestRequest())},
      {FrameType::kDigestReply, Encode(SampleDigestReply())},
      {FrameType::kEntriesRequest, Encode(SampleEntriesRequest())},
      {FrameType::kEntriesReply, Encode(SampleEntriesReply())},
      {FrameType::kChunkAck, Encode(SampleChunkAck())},
      {FrameType::kCloneSet, Encode(SampleCloneSet())},
      {FrameType::kCloneFiles, Encode(SampleCloneFiles())},
      {FrameType::kUnitDigestRequest, Encode(SampleUnitDigestRequest())},
      {FrameType::kFactsRequest, Encode(SampleFactsRequest())},
      {FrameType::kFactsReply, Encode(SampleFactsReply())},
      {FrameType::kGroupRequest, Encode(SampleGroupRequest())},
      {FrameType::kGroupReply, Encode(SampleGroupReply())},
      {FrameType::kDeltaRequest, Encode(SampleDeltaRequest())},
      {FrameType::kBusy, Encode(SampleBusy())},
      {FrameType::kOtherFileRequest, Encode(SampleOtherFileRequest())},
      {FrameType::kOtherFilePart, Encode(SampleOtherFilePart())},
      {FrameType::kPinRequest, Encode(SamplePinRequest())},
      {FrameType::kPinReply, Encode(SamplePinReply())},
      {FrameType::kPinEnd, Encode(SamplePinEnd())},
      {FrameType::kFollowRequest, Encode(SampleFollowRequest())},
      {FrameType::kWalBytes, Encode(SampleWalBytes())},
      {FrameType::kFollowEnd, Encode(SampleFollowEnd())},
      {FrameType::kFileDigestRequest, Encode(SampleFileDigestRequest())},
      {FrameType::kFileDigestReply, Encode(SampleFileDigestReply())},
      {FrameType::kSiftRequest, Encode(SampleSiftRequest())},
      {FrameType::kSiftReply, Encode(SampleSiftReply())},
  };
}

std::string SampleJournal() {
  std::string journal(kJournalMagic, kJournalMagicBytes);
  AppendRecord(JournalRecordType::kTransfer, SampleJournalTransfer(),
               &journal);
  AppendRecord(JournalRecordType::kPlan, SampleJournalPlan(), &journal);
  AppendRecord(JournalRecordType::kChunk, SampleJournalChunk(), &journal);
  AppendRecord(JournalRecordType::kIngested, SampleJournalIngested(),
               &journal);
  AppendRecord(JournalRecordType::kTargetFiles,
               SampleJournalTargetFiles(), &journal);
  AppendRecord(JournalRecordType::kPartDone, SampleJournalPartDone(),
               &journal);
  AppendRecord(JournalRecordType::kComplete, SampleJournalComplete(),
               &journal);
  AppendRecord(JournalRecordType::kChunk, SampleJournalUnit(), &journal);
  return journal;
}

std::vector<uint64_t> SampleJournalOffsets() {
  std::vector<uint64_t> offsets = {kJournalMagicBytes};
  for (size_t payload_bytes :
       {Encode(SampleJournalTransfer()).size(),
        Encode(SampleJournalPlan()).size(),
        Encode(SampleJournalChunk()).size(),
        Encode(SampleJournalIngested()).size(),
        Encode(SampleJournalTargetFiles()).size(),
        Encode(SampleJournalPartDone()).size(),
        Encode(SampleJournalComplete()).size(),
        Encode(SampleJournalUnit()).size()}) {
    offsets.push_back(offsets.back() + kJournalHeaderBytes + payload_bytes);
  }
  return offsets;
}

Lease SampleLease() {
  Lease lease;
  lease.transfer_id[0] = 0xab;
  lease.transfer_id[15] = 0xcd;
  lease.database = "db";
  lease.directory = "/data/db";
  lease.request.database = "db";
  lease.request.families = {"default", "meta"};
  lease.request.interval.begin = std::string("\0k", 2);
  lease.request.lanes = 4;
  lease.request.chunk_bytes = 64'000'000;
  lease.target.software = "sstferry 0.1.0";
  lease.target.max_format_version = 5;
  lease.owner_subject = "CN=replica-2";
  lease.owner_names = {"replica-2", "replica-2.example"};
  lease.plan_lanes = 4;
  lease.source_database_id = "id";
  lease.snapshot_sequence = 12345;
  lease.read_only = true;
  lease.wal_bytes = 77;
  lease.plan = {1, 2};
  lease.pinned_bytes = 1'000'000;
  lease.created_seconds = 1000;
  lease.renewed_seconds = 2000;
  lease.ttl_seconds = 3600;
  lease.readers = 1;
  return lease;
}

ArchiveSet SampleArchiveSet() {
  ArchiveSet set;
  set.name = {1'795'000'000, SetId{1, 2, 3, 4, 5, 6, 7, 8}};
  set.label = "nightly";
  set.software = "sstferry 0.1.0";
  set.host = "db1";
  set.database_id = "id";
  set.sequence = 12345;
  set.application = "8.11.4";
  set.needs = "7.1";
  set.needs_because = "compressed WALs";
  set.content = {5, 6};
  set.families = {"default", "meta"};
  set.notes = {"a note"};
  CloneFile table;
  table.number = 12;
  table.bytes = 100'000'000;
  table.identity = {0xab, 0xcd};
  set.files.push_back({table,
                       {SetId{8, 7}, true, table.identity, table.bytes},
                       {1, 2, 3},
                       {{1, 2}, {3, 4}, {5, 6}}});
  CloneFile manifest;
  manifest.kind = CloneFileKind::kManifest;
  manifest.number = 5;
  manifest.bytes = 100;
  manifest.records_end = 99;
  set.files.push_back({manifest,
                       {set.name.id, false, {}, 0, CloneFileKind::kManifest, 5},
                       {9},
                       {{7, 8}}});
  return set;
}

LogHead SampleLogHead() {
  LogHead head;
  head.key = {SetId{1, 2, 3, 4, 5, 6, 7, 8}, 42, 1'795'000'000'000'001,
              1'795'000'010'000'002};
  head.previous_lineage = SetId{9, 9};
  head.previous = {4, 5, 6};
  head.begin = {5, 1000, {7, 8}, 12, 34567};
  head.judged = {1100, {9, 10}};
  head.note = "a note";
  head.host = "db1";
  head.software = "sstferry 0.1.0";
  head.wals = {{12, 100}, {15, 3000}};
  head.moments = {{1'795'000'000'000'500, 60, 1000},
                  {1'795'000'000'000'500, 150, 0},
                  {1'795'000'010'000'002, 3100, 1002}};
  head.payload = {11, 12};
  head.is_sealed = true;
  head.key_id = {1, 2};
  head.salt = {3, 4};
  head.seal = {5, 6};
  head.database_id = "id of the source";
  head.wal = {13, 14};
  return head;
}

ArchiveMark SampleArchiveMark() {
  ArchiveMark mark;
  mark.marked_seconds = 1'795'000'000;
  mark.sets = {{SampleArchiveSet().name, true}, {{77, SetId{1}}, false}};
  for (const ArchivedFile& file : SampleArchiveSet().files) {
    mark.keys.push_back(file.key);
  }
  mark.segments = {SampleLogHead().key, {SetId{7}, 1, 0, 0}};
  return mark;
}

std::vector<std::pair<std::string, std::string>> SampleArchiveObjects() {
  std::vector<std::pair<std::string, std::string>> objects;
  const auto add = [&objects](const char* name, char kind,
                              const std::string& object) {
    objects.emplace_back(name, std::string(1, kind) + object);
    objects.emplace_back(
        std::string(name) + "_payload",
        std::string(1, kind) + object.substr(kSealedHeaderBytes));
  };
  std::string object;
  ArchiveHead head;
  head.grace_seconds = 86400;
  EncodeArchiveHead(head, &object);
  add("head", 0, object);
  object.clear();
  ArchiveIntent intent;
  intent.host = "db1";
  intent.uses = {SetId{1}, SetId{2}};
  EncodeArchiveIntent(intent, &object);
  add("intent", 1, object);
  object.clear();
  EncodeArchiveMark(SampleArchiveMark(), &object);
  add("mark", 2, object);
  object.clear();
  EncodeArchiveDone({{3, 4}}, &object);
  add("done", 3, object);
  object.clear();
  const ArchiveSet set = SampleArchiveSet();
  EncodeArchiveSet(set, &object).PermitUncheckedError();
  add("set", 4, object);
  objects.emplace_back("set_record",
                       std::string(1, 4) + EncodeArchiveSetRecord(set));
  object.clear();
  EncodeLogHead(SampleLogHead(), &object);
  add("segment", 6, object);
  objects.emplace_back("log_key", "\5" + LogKeyText(SampleLogHead().key));
  objects.emplace_back("name", "\5" + SetNameText(set.name));
  for (const ArchivedFile& file : set.files) {
    objects.emplace_back("key" + std::to_string(file.file.number),
                         "\5" + ArchiveKeyText(file.key));
  }
  return objects;
}

std::string SealedLease(const std::string& payload) {
  std::string file;
  SealFile(kLeaseMagic, payload, &file);
  return file;
}

Status DecodePayload(FrameType type, const Slice& payload) {
  switch (type) {
    case FrameType::kHello: return DecodeAs<Hello>(payload);
    case FrameType::kHelloAck: return DecodeAs<HelloAck>(payload);
    case FrameType::kEnd: return DecodeAs<End>(payload);
    case FrameType::kListRequest: return DecodeAs<ListRequest>(payload);
    case FrameType::kListReply: return DecodeAs<ListReply>(payload);
    case FrameType::kOpenRequest: return DecodeAs<OpenRequest>(payload);
    case FrameType::kOpened: return DecodeAs<Opened>(payload);
    case FrameType::kFamily: return DecodeAs<Family>(payload);
    case FrameType::kParts: return DecodeAs<Parts>(payload);
    case FrameType::kPlanItems: return DecodeAs<PlanItems>(payload);
    case FrameType::kPlanEnd: return DecodeAs<PlanEnd>(payload);
    case FrameType::kPing: return DecodeAs<Ping>(payload);
    case FrameType::kPong: return DecodeAs<Ping>(payload);
    case FrameType::kStats: return DecodeAs<Stats>(payload);
    case FrameType::kFinish: return DecodeAs<Finish>(payload);
    case FrameType::kFinished: return DecodeAs<Finish>(payload);
    case FrameType::kCompress: return DecodeAs<Compress>(payload);
    case FrameType::kReceived: return DecodeAs<Received>(payload);
    case FrameType::kStatusRequest: return DecodeAs<StatusRequest>(payload);
    case FrameType::kStatusReply: return DecodeAs<StatusReply>(payload);
    case FrameType::kFactsRequest: return DecodeAs<FactsRequest>(payload);
    case FrameType::kFactsReply: return DecodeAs<FactsReply>(payload);
    case FrameType::kFollowRequest: return DecodeAs<FollowRequest>(payload);
    case FrameType::kWalBytes: return DecodeAs<WalBytes>(payload);
    case FrameType::kFollowEnd: return DecodeAs<FollowEnd>(payload);
    case FrameType::kPinRequest: return DecodeAs<PinRequest>(payload);
    case FrameType::kPinReply: return DecodeAs<PinReply>(payload);
    case FrameType::kPinEnd: return DecodeAs<PinEnd>(payload);
    case FrameType::kOtherFileRequest:
      return DecodeAs<OtherFileRequest>(payload);
    case FrameType::kOtherFilePart: return DecodeAs<OtherFilePart>(payload);
    case FrameType::kCloneSet: return DecodeAs<CloneSet>(payload);
    case FrameType::kCloneFiles: return DecodeAs<CloneFiles>(payload);
    case FrameType::kPartRequest: return DecodeAs<PartRequest>(payload);
    case FrameType::kChunkBegin: return DecodeAs<ChunkBegin>(payload);
    case FrameType::kChunkData: return Status::OK();
    case FrameType::kChunkEnd: return DecodeAs<ChunkEnd>(payload);
    case FrameType::kPartEnd: return DecodeAs<PartEnd>(payload);
    case FrameType::kDigestRequest: return DecodeAs<DigestRequest>(payload);
    case FrameType::kUnitDigestRequest:
      return DecodeAs<UnitDigestRequest>(payload);
    case FrameType::kFileDigestRequest:
      return DecodeAs<FileDigestRequest>(payload);
    case FrameType::kFileDigestReply:
      return DecodeAs<FileDigestReply>(payload);
    case FrameType::kBusy:
      return DecodeAs<Busy>(payload);
    case FrameType::kGroupRequest: return DecodeAs<GroupRequest>(payload);
    case FrameType::kGroupReply: return DecodeAs<GroupReply>(payload);
    case FrameType::kSiftRequest: return DecodeAs<SiftRequest>(payload);
    case FrameType::kSiftReply: return DecodeAs<SiftReply>(payload);
    case FrameType::kDeltaRequest: return DecodeAs<DeltaRequest>(payload);
    case FrameType::kDigestReply: return DecodeAs<DigestReply>(payload);
    case FrameType::kEntriesRequest: return DecodeAs<EntriesRequest>(payload);
    case FrameType::kEntriesReply: return DecodeAs<EntriesReply>(payload);
    case FrameType::kChunkAck: return DecodeAs<ChunkAck>(payload);
  }
  return Status::NotSupported("no such type");
}

Status DecodeRecord(const JournalRecord& record) {
  switch (record.type) {
    case JournalRecordType::kTransfer:
      return DecodeAs<JournalTransfer>(record.payload);
    case JournalRecordType::kPlan:
      return DecodeAs<JournalPlan>(record.payload);
    case JournalRecordType::kChunk:
      return DecodeAs<JournalChunk>(record.payload);
    case JournalRecordType::kPartDone:
      return DecodeAs<JournalPartDone>(record.payload);
    case JournalRecordType::kComplete:
      return DecodeAs<JournalComplete>(record.payload);
    case JournalRecordType::kIngested:
      return DecodeAs<JournalIngested>(record.payload);
    case JournalRecordType::kTargetFiles:
      return DecodeAs<JournalTargetFiles>(record.payload);
  }
  return Status::NotSupported("no such type");
}

}  // namespace sstferry
