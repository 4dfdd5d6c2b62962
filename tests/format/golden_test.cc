// tests/golden holds good bytes and their annotated dumps, tests/golden_errors
// bad bytes, each with a note why it is bad and the error it must give.
//
// A .hex file: lines "# key: value", then hex digits with any white space.
// "kind" is frame or journal, "status" the code, "error" the exact message.
// To write the files of tests/golden anew after a deliberate change of format:
//   test_format "[.rewrite]"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "format/annotate.h"
#include "format/coding.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry {

using rocksdb::Status;

namespace {

const std::filesystem::path kTests =
    std::filesystem::path(SSTFERRY_SOURCE_DIR) / "tests";

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path);
  INFO(path.string());
  REQUIRE(in.good());
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void WriteText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  REQUIRE(out.good());
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (isxdigit(static_cast<unsigned char>(c)) != 0) {
      digits.push_back(c);
    }
    if (digits.size() == 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
      digits.clear();
    }
  }
  REQUIRE(digits.empty());
  return bytes;
}

struct Golden {
  std::map<std::string, std::string> notes;
  std::string bytes;
};

Golden ReadGolden(const std::filesystem::path& path) {
  Golden golden;
  std::istringstream in(ReadText(path));
  std::string line;
  std::string hex;
  while (std::getline(in, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("# ", 0) == 0 && colon != std::string::npos) {
      golden.notes[line.substr(2, colon - 2)] = line.substr(colon + 2);
    } else {
      hex += line;
    }
  }
  golden.bytes = FromHex(hex);
  return golden;
}

std::string Wrapped(const std::string& hex) {
  std::string lines;
  for (size_t i = 0; i < hex.size(); i += 64) {
    lines += hex.substr(i, 64) + "\n";
  }
  return lines;
}

Status Annotate(const std::string& kind, const std::string& bytes,
                std::string* text) {
  return kind == "journal" ? AnnotateJournal(bytes, text)
                           : AnnotateFrame(bytes, text);
}

std::string CodeOf(const Status& status) {
  if (status.IsCorruption()) return "Corruption";
  if (status.IsIncomplete()) return "Incomplete";
  if (status.IsNotSupported()) return "NotSupported";
  return "other";
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
       SampleJournal().substr(0, SampleJournalOffsets()[3] + 20)});
  return samples;
}

}  // namespace

TEST_CASE("Encoders produce the golden bytes and their dumps", "[format]") {
  for (const Sample& sample : GoldenSamples()) {
    INFO(sample.name);
    const auto path = kTests / "golden" / sample.name;
    REQUIRE(ToHex(ReadGolden(path.string() + ".hex").bytes) ==
            ToHex(sample.bytes));
    std::string text;
    REQUIRE_OK(Annotate(sample.kind, sample.bytes, &text));
    REQUIRE(text == ReadText(path.string() + ".txt"));
  }
}

TEST_CASE("Bad golden bytes give the error their note tells",
          "[format][corruption]") {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(kTests / "golden_errors")) {
    if (entry.path().extension() != ".hex") {
      continue;
    }
    INFO(entry.path().string());
    Golden golden = ReadGolden(entry.path());
    const std::string kind = golden.notes["kind"];
    if (kind != "frame" && kind != "journal") {
      continue;  // another test's
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
  REQUIRE(files >= 12);
}

TEST_CASE("FORMAT.md's worked example is what the codec produces",
          "[format]") {
  const std::string text =
      ReadText(kTests.parent_path() / "format" / "FORMAT.md");
  const std::string frame = MakeFrame(FrameType::kRangeRequest, 1,
                                      Encode(RangeRequest{7, "key", 2}));
  std::string dump;
  REQUIRE_OK(AnnotateFrame(frame, &dump));
  INFO(dump);
  REQUIRE(text.find("```\n" + dump + "```") != std::string::npos);
}

TEST_CASE("The golden bytes are written anew", "[.rewrite]") {
  for (const Sample& sample : GoldenSamples()) {
    const auto path = kTests / "golden" / sample.name;
    std::string text;
    REQUIRE_OK(Annotate(sample.kind, sample.bytes, &text));
    WriteText(path.string() + ".hex", "# kind: " + sample.kind + "\n" +
                                          Wrapped(ToHex(sample.bytes)));
    WriteText(path.string() + ".txt", text);
  }
}

}  // namespace sstferry
