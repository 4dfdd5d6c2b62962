// tests/golden contains good bytes and their annotated dumps.
// tests/golden_errors contains bad bytes, each with a note why they are bad and
// the error that they must give.
//
// A .hex file: lines "# key: value", then hex digits with any white space.
// "kind" is frame, journal, lease, stream or sst (golden_sst_test.cc), "status"
// the code, "error" the exact message. To write the files of tests/golden again
// after a deliberate change of a format:
//   test_format "[.rewrite]"
#include <filesystem>

#include "format/coding.h"
#include "format/lease.h"
#include "tests/format/golden_files.h"
#include "tests/format/samples.h"
#include "tests/support/annotate.h"
#include "tests/support/catch.h"

namespace sstferry::golden_test {

using rocksdb::Status;

namespace {

Status Annotate(const std::string& kind, const std::string& bytes,
                std::string* text) {
  Lease lease;
  return kind == "journal"  ? AnnotateJournal(bytes, text)
         : kind == "lease"  ? DecodeLease(bytes, &lease)
         : kind == "stream" ? AnnotateStream(bytes, text)
                            : AnnotateFrame(bytes, text);
}

struct Sample {
  std::string name;
  std::string kind;
  std::string bytes;
};

std::vector<Sample> GoldenSamples() {
  std::vector<Sample> samples;
  const std::vector<SampleFrame> frames = SampleFrames();
  for (size_t i = 0; i < frames.size(); ++i) {
    samples.push_back({std::string("frame_") + FrameTypeName(frames[i].type),
                       "frame",
                       MakeFrame(frames[i].type, i, frames[i].payload)});
  }
  samples.push_back(
      {"frame_ChunkData_zstd", "frame", SampleCompressedFrame()});
  samples.push_back({"journal", "journal", SampleJournal()});
  samples.push_back(
      {"journal_torn", "journal",
       SampleJournal().substr(0, SampleJournalOffsets()[5] + 20)});
  samples.push_back({"stream", "stream", SampleStream()});
  return samples;
}

}  // namespace

TEST_CASE("Encoders produce the golden bytes and their dumps", "[format]") {
  for (const Sample& sample : GoldenSamples()) {
    INFO(sample.name);
    const auto path = TestsFolder() / "golden" / sample.name;
    REQUIRE(ToHex(ReadGolden(path.string() + ".hex").bytes) ==
            ToHex(sample.bytes));
    std::string text;
    REQUIRE_OK(Annotate(sample.kind, sample.bytes, &text));
    REQUIRE(text == ReadText(path.string() + ".txt"));
  }
}

TEST_CASE("Bad golden bytes give the error in their note",
          "[format][corruption]") {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(TestsFolder() / "golden_errors")) {
    if (entry.path().extension() != ".hex") {
      continue;
    }
    INFO(entry.path().string());
    Golden golden = ReadGolden(entry.path());
    const std::string kind = golden.notes["kind"];
    if (kind == "sst") {
      continue;  // checked by golden_sst_test.cc
    }
    REQUIRE_FALSE(golden.notes["why"].empty());
    std::string text;
    const Status status = Annotate(kind, golden.bytes, &text);
    INFO(status.ToString());
    REQUIRE(CodeOf(status) == golden.notes["status"]);
    const std::string message =
        status.IsIncomplete() ? status.getState() : MessageOf(status);
    REQUIRE(message == golden.notes["error"]);
    ++files;
  }
  REQUIRE(files >= 55);
}

TEST_CASE("The codec produces FORMAT.md's worked example", "[format]") {
  const std::string text =
      ReadText(TestsFolder().parent_path() / "format" / "FORMAT.md");
  const std::string frame = MakeFrame(FrameType::kPartRequest, 1,
                                      Encode(PartRequest{7, "key", 2}));
  std::string dump;
  REQUIRE_OK(AnnotateFrame(frame, &dump));
  INFO(dump);
  REQUIRE(text.find("```\n" + dump + "```") != std::string::npos);
}

TEST_CASE("The golden bytes are written again", "[.rewrite]") {
  for (const Sample& sample : GoldenSamples()) {
    const auto path = TestsFolder() / "golden" / sample.name;
    std::string text;
    REQUIRE_OK(Annotate(sample.kind, sample.bytes, &text));
    WriteText(path.string() + ".hex", "# kind: " + sample.kind + "\n" +
                                          Wrapped(ToHex(sample.bytes)));
    WriteText(path.string() + ".txt", text);
  }
}

}  // namespace sstferry::golden_test
