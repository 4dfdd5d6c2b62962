// Writes small seed corpora: make_corpus DIR makes DIR/frame, DIR/messages,
// DIR/journal, DIR/sst_tail and DIR/wire_compression.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "format/limits.h"
#include "format/sst_tail.h"
#include "format/wire_compression.h"
#include "tests/format/samples.h"

namespace {

bool Write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  return out.good();
}

// A table file, and the same carried.
bool WriteTable(const std::filesystem::path& directory,
                const std::string& name, const std::string& file) {
  const sstferry::SliceSource source(file);
  sstferry::SstReader reader;
  sstferry::SstTail tail;
  if (!reader.Open(&source).ok() || !RewriteSstTail(reader, &tail).ok()) {
    fprintf(stderr, "not carried: %s\n", name.c_str());
    return false;
  }
  return Write(directory / name, file) &&
         Write(directory / (name + "-carried"),
               file.substr(0, tail.body_bytes) + tail.bytes);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sstferry;
  if (argc != 2) {
    fprintf(stderr, "usage: make_corpus DIR\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  bool ok = Write(directory / "journal" / "whole", SampleJournal());
  for (const uint64_t offset : SampleJournalOffsets()) {
    ok &= Write(directory / "journal" / ("cut" + std::to_string(offset)),
                SampleJournal().substr(0, offset));
  }
  for (const SampleFrame& sample : SampleFrames()) {
    const std::string name = FrameTypeName(sample.type);
    ok &= Write(directory / "frame" / name,
                MakeFrame(sample.type, 0, sample.payload));
    ok &= Write(directory / "messages" / name,
                std::string(1, static_cast<char>(sample.type)) +
                    sample.payload);
  }
  const std::filesystem::path tables =
      std::filesystem::path(SSTFERRY_SOURCE_DIR) / "tests" / "golden" / "sst";
  for (const auto& entry : std::filesystem::directory_iterator(tables)) {
    if (entry.path().extension() == ".sst") {
      std::ifstream in(entry.path(), std::ios::binary);
      ok &= WriteTable(directory / "sst_tail", entry.path().stem().string(),
                       std::string(std::istreambuf_iterator<char>(in), {}));
    }
  }
  ok &= Write(directory / "frame" / "ChunkData_zstd", SampleCompressedFrame());
  ok &= Write(directory / "wire_compression" / "run",
              SampleCompressedPayload());
  WireCompressor compressor(3);
  rocksdb::Slice payload;
  ok &= compressor.Compress(SampleJournal(), kMaxPayloadBytes, &payload) &&
        Write(directory / "wire_compression" / "journal", payload.ToString());
  return ok ? 0 : 1;
}
