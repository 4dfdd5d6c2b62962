// Writes small seed corpora: make_corpus DIR makes DIR/frame, DIR/messages and
// DIR/journal.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/format/samples.h"

namespace {

bool Write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  return out.good();
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
  return ok ? 0 : 1;
}
