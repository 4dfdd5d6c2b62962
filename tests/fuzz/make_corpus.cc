// Writes seed corpora: make_corpus DIR makes DIR/TARGET/NAME for each target.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "format/limits.h"
#include "format/rocksdb/log_follower.h"
#include "format/sealed_file.h"
#include "format/stream_frame.h"
#include "format/wire_compression.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/pull/source_session.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "tests/format/samples.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/tiny_database.h"

namespace sstferry::fuzz {
namespace {

namespace fs = std::filesystem;

std::string Whole(const std::string& path,
                  rocksdb::Env* env = rocksdb::Env::Default()) {
  std::string bytes;
  MustWork(rocksdb::ReadFileToString(env, path, &bytes));
  return bytes;
}

void Write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  MustWork(out.good() ? rocksdb::Status::OK()
                      : rocksdb::Status::IOError(path.string()));
}

// --- bytes of format/ -------------------------------------------------------

void MakeFormatSeeds(const fs::path& directory) {
  Write(directory / "journal" / "whole", SampleJournal());
  for (const uint64_t offset : SampleJournalOffsets()) {
    Write(directory / "journal" / ("cut" + std::to_string(offset)),
          SampleJournal().substr(0, offset));
  }
  Lease lease = SampleLease();
  std::string whole;
  MustWork(EncodeLease(lease, &whole));
  Write(directory / "lease" / "file", whole);
  Write(directory / "lease" / "payload", whole.substr(kSealedHeaderBytes));
  lease.request = SampleOpenRequest();
  lease.target = SampleHello();
  whole.clear();
  MustWork(EncodeLease(lease, &whole));
  Write(directory / "lease" / "full", whole.substr(kSealedHeaderBytes));
  for (const auto& [name, object] : SampleArchiveObjects()) {
    Write(directory / "archive" / name, object);
  }
  Write(directory / "stream" / "accepts", "\2" + SampleStream());
  Write(
      directory / "stream" / "dials",
      "\3" + SampleStream().erase(kStreamHelloBytes, kStreamFrameHeaderBytes));
  for (const SampleFrame& sample : SampleFrames()) {
    const std::string name = FrameTypeName(sample.type);
    Write(directory / "frame" / name,
          MakeFrame(sample.type, 0, sample.payload));
    Write(directory / "messages" / name,
          std::string(1, static_cast<char>(sample.type)) + sample.payload);
  }
}

// --- RocksDB's logs ---------------------------------------------------------

// Returns the bytes of a golden file. *number: the number in its note.
std::string GoldenBytes(const fs::path& path, uint64_t* number) {
  std::ifstream in(path);
  std::string line;
  std::string bytes;
  while (std::getline(in, line)) {
    if (line.rfind("# number: ", 0) == 0) {
      *number = std::stoull(line.substr(10));
      continue;
    }
    for (size_t at = 0; at + 1 < line.size(); at += 2) {
      bytes += static_cast<char>(std::stoi(line.substr(at, 2), nullptr, 16));
    }
  }
  return bytes;
}

// Makes seeds of the golden files and of their logical records.
void MakeRocksDbSeeds(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(
           fs::path(SSTFERRY_SOURCE_DIR) / "tests/golden/rocksdb")) {
    if (entry.path().extension() != ".hex") {
      continue;
    }
    const std::string name = entry.path().stem();
    const LogKind kind =
        name.rfind("wal", 0) == 0 ? LogKind::kWal : LogKind::kManifest;
    const fs::path target =
        directory / (kind == LogKind::kWal ? "wal" : "manifest");
    uint64_t number = 0;
    const std::string bytes = GoldenBytes(entry.path(), &number);
    Write(target / name, bytes);
    LogFollower follower(kind, number);
    MustWork(follower.Follow(
        SliceSource(bytes),
        [&](const rocksdb::Slice& record, uint64_t end) {
          Write(target / (name + "_" + std::to_string(end)),
                record.ToString());
          return rocksdb::Status::OK();
        }));
  }
}

// --- table files ------------------------------------------------------------

struct Chunk {
  std::string file;
  ChunkEnd end;
};

struct Shape {
  std::string name;
  uint32_t format_version = 5;
  rocksdb::CompressionType compression = rocksdb::kNoCompression;
  rocksdb::ChecksumType checksum = rocksdb::kNoChecksum;
  rocksdb::BlockBasedTableOptions::IndexType index =
      rocksdb::BlockBasedTableOptions::kBinarySearch;
  bool filter = false;
  bool reverse = false;
  uint32_t dict_bytes = 0;
  // Ends with three deletions and a range deletion between two of them.
  bool is_delta = false;
};

Chunk MakeChunk(const Shape& shape, int first, int last) {
  const std::unique_ptr<rocksdb::Env> env(
      rocksdb::NewMemEnv(rocksdb::Env::Default()));
  rocksdb::BlockBasedTableOptions table;
  table.format_version = shape.format_version;
  table.checksum = shape.checksum;
  table.index_type = shape.index;
  table.block_size = 256;
  table.metadata_block_size = 64;
  if (shape.filter) {
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  }
  rocksdb::Options options;
  options.env = env.get();
  options.compression = shape.compression;
  options.compression_opts.max_dict_bytes = shape.dict_bytes;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  if (shape.reverse) {
    options.comparator = rocksdb::ReverseBytewiseComparator();
  }
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  MustWork(writer.Open("/f.sst"));
  Chunk chunk;
  for (int i = first; i < last; ++i) {
    const int number = shape.reverse ? first + last - 1 - i : i;
    const std::string key = "key" + std::to_string(number);
    const std::string value(static_cast<size_t>(number % 40), 'v');
    MustWork(writer.Put(key, value));
    chunk.end.smallest = i == first ? key : chunk.end.smallest;
    chunk.end.largest = key;
    chunk.end.entries++;
    chunk.end.key_bytes += key.size();
    chunk.end.value_bytes += value.size();
  }
  if (shape.is_delta) {
    for (const char* key : {"keyx", "keyy", "keyz"}) {
      MustWork(writer.Delete(key));
    }
    MustWork(writer.DeleteRange("keyx", "keyz"));
  }
  MustWork(writer.Finish());
  chunk.file = Whole("/f.sst", env.get());
  return chunk;
}

void MakeSstSeeds(const fs::path& directory) {
  using Table = rocksdb::BlockBasedTableOptions;
  const std::vector<Shape> shapes = {
      {.name = "plain"},
      {.name = "v2", .format_version = 2},
      {.name = "v3", .format_version = 3},
      {.name = "v4", .format_version = 4},
      {.name = "crc32c", .checksum = rocksdb::kCRC32c},
      {.name = "xxh3", .checksum = rocksdb::kXXH3},
      {.name = "two-levels", .index = Table::kTwoLevelIndexSearch},
      {.name = "first-keys", .index = Table::kBinarySearchWithFirstKey},
      {.name = "filter", .filter = true},
      {.name = "reverse", .reverse = true},
      {.name = "delta", .is_delta = true},
      {.name = "delta-filter", .filter = true, .is_delta = true},
      {.name = "zstd", .compression = rocksdb::kZSTD},
      {.name = "zstd-dictionary", .compression = rocksdb::kZSTD,
       .dict_bytes = 512},
      {.name = "lz4", .compression = rocksdb::kLZ4Compression},
      {.name = "snappy", .compression = rocksdb::kSnappyCompression},
      {.name = "zlib", .compression = rocksdb::kZlibCompression},
  };
  for (const Shape& shape : shapes) {
    Write(directory / "sst" / shape.name,
          std::string(1, shape.reverse ? '\1' : shape.is_delta ? '\4' : '\0') +
              MakeChunk(shape, 100, 140).file);
  }
  Write(directory / "sst" / "one-entry",
        std::string(1, '\0') + MakeChunk({}, 100, 101).file);
}

// --- the source's end -------------------------------------------------------

std::string HelloOf(ConnectionKind kind) {
  Hello hello = MakeHello();
  hello.kind = kind;
  std::string script;
  AddStep(FrameType::kHello, 0, Encode(hello), &script);
  return script;
}

void MakeServerControlSeeds(const fs::path& directory) {
  const std::string hello = HelloOf(ConnectionKind::kControl);
  std::string all = hello;
  for (const SampleFrame& sample : SampleFrames()) {
    std::string one = hello;
    AddStep(sample.type, 0, sample.payload, &one);
    Write(directory / FrameTypeName(sample.type), one);
    AddStep(sample.type, kGate, sample.payload, &all);
  }
  Write(directory / "all", all);
  Finish finish;
  finish.families.resize(2);
  for (const char* name : {"db", "opened", "gone", "unknown"}) {
    for (const Purpose purpose :
         {Purpose::kPull, Purpose::kPlan, Purpose::kVerify}) {
      OpenRequest request;
      request.database = name;
      request.purpose = purpose;
      request.lanes = 2;
      request.chunk_bytes = 1u << 20;
      std::string script = hello;
      AddStep(FrameType::kListRequest, 0, Encode(ListRequest()), &script);
      AddStep(FrameType::kOpenRequest, 0, Encode(request), &script);
      AddStep(FrameType::kPing, kGate, Encode(SamplePing()), &script);
      AddStep(FrameType::kFinish, 0, Encode(finish), &script);
      AddStep(FrameType::kEnd, 0, Encode(End()), &script);
      Write(directory / ("open-" + std::string(name) +
                         std::to_string(static_cast<int>(purpose))),
            script);
    }
  }
}

// Makes seeds for a retained transfer: resumed, and read by a verify at the
// same time.
void MakeServerRetainedSeeds(const fs::path& directory) {
  OpenRequest request;
  request.database = "db";
  request.lanes = 2;
  request.chunk_bytes = 1u << 20;
  request.snapshot_use = SnapshotUse::kResume;
  request.named_transfer[0] = 1;
  request.compression = WireCompression::kAuto;
  Received received;
  received.parts.resize(2);
  received.parts[1].part_id = 1;
  Finish finish;
  finish.families.resize(2);
  std::string script = HelloOf(ConnectionKind::kControl);
  AddStep(FrameType::kOpenRequest, kMend, Encode(request), &script);
  AddStep(FrameType::kCompress, kGate, Encode(SampleCompress()), &script);
  AddStep(FrameType::kReceived, 0, Encode(received), &script);
  Write(directory / "resume-lost", script);
  AddStep(FrameType::kFinish, 0, Encode(finish), &script);
  AddStep(FrameType::kEnd, 0, Encode(End()), &script);
  Write(directory / "resume", script);
  request.snapshot_use = SnapshotUse::kShare;
  request.purpose = Purpose::kVerify;
  script = HelloOf(ConnectionKind::kControl);
  AddStep(FrameType::kOpenRequest, kMend, Encode(request), &script);
  AddStep(FrameType::kEnd, kGate, Encode(End()), &script);
  Write(directory / "share", script);
}

void MakeServerLaneSeeds(const fs::path& directory) {
  const std::string hello = HelloOf(ConnectionKind::kLane);
  std::string all = hello;
  PartRequest part;
  AddStep(FrameType::kPartRequest, 0, Encode(part), &all);
  part.after = "key200";
  AddStep(FrameType::kPartRequest, 0, Encode(part), &all);
  part.part_id = 1;
  AddStep(FrameType::kPartRequest, kDrip, Encode(part), &all);
  DigestRequest digest;
  AddStep(FrameType::kDigestRequest, 0, Encode(digest), &all);
  digest.interval = {"key2", "key3"};
  AddStep(FrameType::kDigestRequest, 0, Encode(digest), &all);
  EntriesRequest entries;
  entries.family = 1;
  AddStep(FrameType::kEntriesRequest, 0, Encode(entries), &all);
  entries.after = "key150";
  AddStep(FrameType::kEntriesRequest, 0, Encode(entries), &all);
  AddStep(FrameType::kEnd, 0, Encode(End()), &all);
  Write(directory / "all", all);
  // The lane is interrupted during a chunk, is resumed with the received
  // chunks, then requests another part.
  std::string broken = hello;
  AddStep(FrameType::kPartRequest, kCut, Encode(PartRequest()), &broken);
  broken += hello;
  AddStep(FrameType::kPartRequest, kCut, Encode(PartRequest()), &broken);
  broken += hello;
  AddStep(FrameType::kPartRequest, 0, Encode(part), &broken);
  ChunkAck ack;
  ack.part_id = 1;
  AddStep(FrameType::kChunkAck, 0, Encode(ack), &broken);
  Write(directory / "broken", broken);
  for (const SampleFrame& sample : SampleFrames()) {
    std::string one = hello;
    AddStep(sample.type, 0, sample.payload, &one);
    Write(directory / FrameTypeName(sample.type), one);
  }
}

// --- the target's end -------------------------------------------------------

std::string AckScript() {
  HelloAck ack;
  ack.software = "sstferry fuzzed";
  ack.rocksdb_version = "7.8.3";
  std::string script;
  AddStep(FrameType::kHelloAck, 0, Encode(ack), &script);
  return script;
}

std::string PlanScript() {
  Opened opened = SampleOpened();
  opened.family_count = 1;
  opened.database_options = {{"max_open_files", "100"}};
  std::string script;
  AddStep(FrameType::kOpened, kGate, Encode(opened), &script);
  Family family;
  family.description.name = "default";
  family.description.comparator = "leveldb.BytewiseComparator";
  family.description.table_factory = "BlockBasedTable";
  family.description.options = {{"num_levels", "5"},
                                {"compression", "kNoCompression"}};
  family.description.table_options = {{"block_size", "8192"}};
  family.format_version = 5;
  AddStep(FrameType::kFamily, 0, Encode(family), &script);
  Parts parts;
  parts.parts.resize(2);
  parts.parts[0].interval.end = "m";
  parts.parts[1].id = 1;
  parts.parts[1].interval.begin = "m";
  AddStep(FrameType::kParts, 0, Encode(parts), &script);
  PlanEnd end;
  end.part_count = 2;
  AddStep(FrameType::kStats, 0, Encode(SampleStats()), &script);
  AddStep(FrameType::kPlanEnd, 0, Encode(end), &script);
  return script;
}

std::string ClientInput(uint8_t actions, const std::string& control) {
  std::string input(1, static_cast<char>(actions));
  input.push_back(static_cast<char>(control.size()));
  input.push_back(static_cast<char>(control.size() >> 8));
  return input + control + AckScript();
}

void MakeClientControlSeeds(const fs::path& directory) {
  std::string whole = AckScript();
  AddStep(FrameType::kListReply, kGate, Encode(SampleListReply()), &whole);
  AddStep(FrameType::kPing, 0, Encode(SamplePing()), &whole);
  whole += PlanScript();
  Finish finish;
  finish.families.resize(1);
  finish.families[0] = {1, 2, 3, 4};
  AddStep(FrameType::kFinished, kGate, Encode(finish), &whole);
  Write(directory / "whole", ClientInput(31, whole));
  Write(directory / "failed", ClientInput(47, whole));
  Write(directory / "cancelled", ClientInput(75, whole));
  for (const SampleFrame& sample : SampleFrames()) {
    std::string script = AckScript();
    AddStep(sample.type, kGate, sample.payload, &script);
    Write(directory / FrameTypeName(sample.type), ClientInput(26, script));
    script = AckScript() + PlanScript();
    AddStep(sample.type, kGate, sample.payload, &script);
    Write(directory / ("planned-" + std::string(FrameTypeName(sample.type))),
          ClientInput(26, script));
  }
  std::string status = AckScript();
  AddStep(FrameType::kStatusReply, kGate, Encode(SampleStatusReply()),
          &status);
  Write(directory / "status", ClientInput(144, status));
  std::string refused;
  AddStep(FrameType::kEnd, 0, Encode(SampleEnd()), &refused);
  Write(directory / "refused", ClientInput(2, refused));
}

struct How {
  size_t frame_bytes = 60'000;
  PartKind kind = PartKind::kRebuilt;
  bool zstd = false;
};

void AddChunk(uint32_t part, uint32_t ordinal, Chunk chunk, const How& how,
              std::string* script) {
  ChunkBegin begin;
  begin.part_id = part;
  begin.ordinal = ordinal;
  begin.kind = how.kind;
  AddStep(FrameType::kChunkBegin, 0, Encode(begin), script);
  WireCompressor compressor(1);
  for (size_t at = 0; at < chunk.file.size(); at += how.frame_bytes) {
    const std::string raw = chunk.file.substr(at, how.frame_bytes);
    rocksdb::Slice packed;
    const bool zstd =
        how.zstd && compressor.Compress(raw, kMaxPayloadBytes, &packed);
    AddStep(FrameType::kChunkData, zstd ? kZstd : 0,
            zstd ? packed.ToString() : raw, script);
  }
  chunk.end.part_id = part;
  chunk.end.ordinal = ordinal;
  AddStep(FrameType::kChunkEnd, kMend, Encode(chunk.end), script);
}

// Returns a script with one chunk on three connections: interrupted, resumed,
// damaged, begun again.
std::string CutScript() {
  const Chunk chunk = MakeChunk({}, 100, 110);
  const size_t half = chunk.file.size() / 2;
  std::string script = AckScript();
  AddStep(FrameType::kChunkBegin, 0, Encode(ChunkBegin()), &script);
  AddStep(FrameType::kChunkData, kCut, chunk.file.substr(0, half), &script);
  script += AckScript();
  ChunkBegin begin;
  begin.first_byte = half;
  AddStep(FrameType::kChunkBegin, 0, Encode(begin), &script);
  AddStep(FrameType::kChunkData, kCut | kWrongDigest, chunk.file.substr(half),
          &script);
  script += AckScript();
  AddStep(FrameType::kChunkBegin, 0, Encode(begin), &script);
  AddStep(FrameType::kChunkData, 0, chunk.file.substr(half), &script);
  AddStep(FrameType::kChunkEnd, kMend, Encode(chunk.end), &script);
  AddStep(FrameType::kPartEnd, kMend, Encode(PartEnd()), &script);
  return script;
}

void MakeClientLaneSeeds(const fs::path& directory) {
  PartEnd end;
  std::string whole = AckScript();
  AddChunk(0, 0, MakeChunk({}, 100, 110), {}, &whole);
  AddChunk(0, 1, MakeChunk({}, 110, 120), {.frame_bytes = 700}, &whole);
  AddStep(FrameType::kPartEnd, kMend, Encode(end), &whole);
  Write(directory / "one-part", whole);
  end.part_id = 1;
  AddStep(FrameType::kPartEnd, kMend, Encode(end), &whole);
  const Shape reverse = {.name = "reverse", .reverse = true};
  AddChunk(2, 0, MakeChunk(reverse, 100, 110), {}, &whole);
  end.part_id = 2;
  AddStep(FrameType::kPartEnd, kMend, Encode(end), &whole);
  Write(directory / "whole", whole);
  Write(directory / "cut", CutScript());
  end.part_id = 0;
  for (const bool zstd : {false, true}) {
    std::string delta = AckScript();
    AddChunk(0, 0, MakeChunk({}, 100, 110),
             {.kind = PartKind::kDelta, .zstd = zstd}, &delta);
    AddStep(FrameType::kPartEnd, kMend, Encode(end), &delta);
    Write(directory / (zstd ? "delta-zstd" : "delta"), delta);
  }
  std::string packed = AckScript();
  AddChunk(0, 0, MakeChunk({}, 100, 110), {.frame_bytes = 900, .zstd = true},
           &packed);
  Write(directory / "zstd", packed);
  std::string outside = AckScript();
  AddChunk(0, 0, MakeChunk({}, 200, 210), {}, &outside);
  Write(directory / "outside", outside);
  for (const SampleFrame& sample : SampleFrames()) {
    std::string script = AckScript();
    AddStep(sample.type, 0, sample.payload, &script);
    Write(directory / FrameTypeName(sample.type), script);
  }
}

void MakeBlobSeeds(const fs::path& directory) {
  const std::unique_ptr<rocksdb::Env> env(
      rocksdb::NewMemEnv(rocksdb::Env::Default()));
  rocksdb::Options options;
  options.env = env.get();
  options.create_if_missing = true;
  options.enable_blob_files = true;
  std::unique_ptr<rocksdb::DB> db;
  MustWork(rocksdb::DB::Open(options, "/db", IntoDb(&db)));
  MustWork(db->Put(rocksdb::WriteOptions(), "key", std::string(20, 'v')));
  MustWork(db->Flush(rocksdb::FlushOptions()));
  std::vector<std::string> names;
  MustWork(env->GetChildren("/db", &names));
  const auto blob = std::find_if(
      names.begin(), names.end(),
      [](const std::string& name) { return name.ends_with(".blob"); });
  Write(directory / "blob" / "one", Whole("/db/" + *blob, env.get()));
}

// --- blob files, table files, compressed data -------------------------------

// Makes seeds of the golden table files as files of a clone. Two bytes choose
// the part that arrives: all blocks or those in the middle.
void MakeGoldenTableSeeds(const fs::path& directory) {
  const fs::path tables =
      fs::path(SSTFERRY_SOURCE_DIR) / "tests" / "golden" / "sst";
  for (const auto& entry : fs::directory_iterator(tables)) {
    if (entry.path().extension() != ".sst") {
      continue;
    }
    const std::string name = entry.path().stem().string();
    const std::string file = Whole(entry.path());
    Write(directory / "clone_table" / (name + "-begin"), "\1\x60" + file);
    Write(directory / "clone_table" / (name + "-middle"), "\x20\x40" + file);
  }
}

void MakeCompressedSeeds(const fs::path& directory) {
  Write(directory / "frame" / "ChunkData_zstd", SampleCompressedFrame());
  Write(directory / "wire_compression" / "run", SampleCompressedPayload());
  WireCompressor compressor(3);
  rocksdb::Slice payload;
  if (compressor.Compress(SampleJournal(), kMaxPayloadBytes, &payload)) {
    Write(directory / "wire_compression" / "journal", payload.ToString());
  }
}

// --- texts ------------------------------------------------------------------

void MakeTextSeeds(const fs::path& directory, const TinyDatabase& tiny) {
  for (const auto& entry : fs::directory_iterator(tiny.directory())) {
    if (entry.path().filename().string().starts_with("OPTIONS-")) {
      Write(directory / "options" / "whole", Whole(entry.path()));
    }
  }
  Write(directory / "options" / "short",
        "[Version]\n  rocksdb_version=7.8.3\n[DBOptions]\n"
        "  max_open_files=12\n[CFOptions \"default\"]\n  num_levels=3\n"
        "  compression_per_level=kNoCompression:kZSTD\n"
        "  compression_opts={level=3;max_dict_bytes=16384;}\n"
        "  prefix_extractor=rocksdb.FixedPrefix.8\n"
        "  comparator=leveldb.BytewiseComparator\n"
        "  table_factory=BlockBasedTable\n"
        "[TableOptions/BlockBasedTable \"default\"]\n  block_size=4096\n"
        "  filter_policy=bloomfilter:9.9:false\n");
  int number = 0;
  for (const char* text :
       {"2x10Ki", "264MiB", "290s", "2500ms", "20x00ff", "2key",
        "2name=/dir/db", "2/dir/db", "2127.0.0.1:7420", "2[::1]:80",
        "218446744073709551615", "2host"}) {
    Write(directory / "arguments" / ("value" + std::to_string(++number)),
          "\2" + std::string(text + 1));
  }
  Write(directory / "arguments" / "lines",
        std::string(1, '\0') + "a\n--lanes\n3\n--cf=x\n--cf\ny\n--replace\nb");
  Write(directory / "arguments" / "config",
        std::string(1, '\1') +
            "# comment\nlanes = 3\ncf = [\"x\"]\nreplace = true\n");
}

// Makes documents of stores, and texts with credentials.
void MakeStoreSeeds(const fs::path& directory) {
  const std::map<std::string, std::string> documents = {
      {"error", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>"
                "SlowDown</Code><Message>a &amp; b</Message></Error>"},
      {"list",
       "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
       "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
       "<NextContinuationToken>t</NextContinuationToken><Contents><Key>a%2Fb"
       "</Key><LastModified>2026-11-25T12:00:00.000Z</LastModified><ETag>"
       "&quot;e&quot;</ETag><Size>12</Size></Contents></ListBucketResult>"},
      {"begun", "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                "</InitiateMultipartUploadResult>"},
      {"completed", "<CompleteMultipartUploadResult/>"},
      {"uploads", "<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>u"
                  "</UploadId><Initiated>2026-11-25T12:00:00+01:00</Initiated>"
                  "</Upload></ListMultipartUploadsResult>"},
      {"deleted", "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code>"
                  "</Error></DeleteResult>"},
      {"role", "<AssumeRoleWithWebIdentityResponse>"
               "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>A"
               "</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>"
               "T</SessionToken><Expiration>2026-11-25T12:00:00Z</Expiration>"
               "</Credentials></AssumeRoleWithWebIdentityResult>"
               "</AssumeRoleWithWebIdentityResponse>"},
  };
  for (const auto& [name, xml] : documents) {
    Write(directory / "s3_xml" / name, xml);
  }
  Write(directory / "credentials" / "json",
        "{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\","
        "\"SessionToken\":\"T\",\"Expiration\":\"2026-11-25T12:00:00Z\"}");
  Write(directory / "credentials" / "profile",
        "# c\n[profile a]\naws_access_key_id = A\ns3 =\n  x = y\n[b]\nk=v\n");
}

}  // namespace
}  // namespace sstferry::fuzz

int main(int argc, char** argv) {
  using namespace sstferry::fuzz;
  if (argc != 2) {
    fprintf(stderr, "usage: make_corpus DIR\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  MakeFormatSeeds(directory);
  MakeRocksDbSeeds(directory);
  MakeSstSeeds(directory);
  MakeGoldenTableSeeds(directory);
  MakeBlobSeeds(directory);
  MakeCompressedSeeds(directory);
  MakeServerControlSeeds(directory / "server_control");
  MakeServerRetainedSeeds(directory / "server_control");
  MakeServerLaneSeeds(directory / "server_lane");
  MakeClientControlSeeds(directory / "client_control");
  MakeClientLaneSeeds(directory / "client_lane");
  MakeTextSeeds(directory, TinyDatabase());
  MakeStoreSeeds(directory);
  return 0;
}
