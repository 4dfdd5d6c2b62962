// Checks links and lengths of the documents. Each rule is first tried on a
// small bad text.
#include <filesystem>
#include <set>
#include <string>

#include "tests/docs/markdown.h"
#include "tests/support/catch.h"

namespace sstferry::links_test {
namespace {

std::string BadLinksOf(const std::map<std::string, std::string>& texts) {
  std::map<std::string, Document> documents;
  for (const auto& [path, text] : texts) {
    documents[path] = ParseDocument(path, text);
  }
  return BadLinks(documents, [&](const std::string& path) {
    return texts.count(path) != 0 || path == "tools/check";
  });
}

TEST_CASE("A broken link is found", "[docs]") {
  REQUIRE(BadLinksOf({{"README.md", "see [it](docs/no.md)\n"}}) ==
          "README.md:1: (docs/no.md): there is no docs/no.md\n");
  REQUIRE(BadLinksOf({{"docs/a.md", "\n[b](b.md#two)\n"},
                      {"docs/b.md", "# One\n"}}) ==
          "docs/a.md:2: (b.md#two): docs/b.md has no heading for #two\n");
  REQUIRE(BadLinksOf({{"docs/a.md", "# One\n[here](#two)\n"}}) ==
          "docs/a.md:2: (#two): docs/a.md has no heading for #two\n");
  REQUIRE(BadLinksOf({{"README.md", "[up](../other/x.md)\n"}}) ==
          "README.md:1: (../other/x.md): there is no ../other/x.md\n");
  REQUIRE(BadLinksOf({{"README.md", "[it](tools/check#run)\n"}}) ==
          "README.md:1: (tools/check#run): tools/check is no document with "
          "headings\n");
}

TEST_CASE("A link to an existing target passes", "[docs]") {
  REQUIRE(BadLinksOf({{"docs/a.md",
                       "# A `b`: c\n## A b c\n[1](#a-b-c) [2](#a-b-c-1)\n"
                       "[`code`](../tools/check) [web](https://example.org)\n"
                       "not `[](here)`\n```\nnor [here](no.md)\n```\n"}}) ==
          "");
}

TEST_CASE("Every link of the documents has a target", "[docs]") {
  REQUIRE(BadLinks(AllDocuments(), IsInRepository) == "");
}

TEST_CASE("A path that does not exist is found", "[docs]") {
  const auto exists = [](const std::string& path) {
    return path == "format/limits.h" || path == "pipeline/base/";
  };
  const std::string text =
      "`format/limits.h` `base/` `a/b` `tests/*.patch` `tests/run --all`\n";
  REQUIRE(BadPaths(ParseDocument("pipeline/README.md", text), exists) ==
          "pipeline/README.md:1: there is no tests/run\n");
  REQUIRE(BadPaths(ParseDocument("docs/a.md", "`pipeline/bace/x.h`"),
                   exists) ==
          "docs/a.md:1: there is no pipeline/bace/x.h\n");
}

TEST_CASE("Every path that a document names exists", "[docs]") {
  std::string bad;
  for (const auto& [path, document] : AllDocuments()) {
    if (path != "CHANGELOG.md") {  // its history names removed files
      bad += BadPaths(document, IsInRepository);
    }
  }
  REQUIRE(bad == "");
}

TEST_CASE("The first pages stay short", "[docs]") {
  const auto documents = AllDocuments();
  REQUIRE(ParseDocument("x.md", "a\nb\n").line_count == 2);
  REQUIRE(documents.at("README.md").line_count <= 150);
  REQUIRE(documents.at("tests/README.md").line_count <= 100);
}

TEST_CASE("Every page of docs/ is listed by its first page", "[docs]") {
  const auto documents = AllDocuments();
  std::set<std::string> listed;
  for (const Span& link : documents.at("docs/README.md").links) {
    listed.insert("docs/" + link.text);
  }
  for (const auto& [path, document] : documents) {
    INFO(path);
    REQUIRE((!path.starts_with("docs/") || path == "docs/README.md" ||
             listed.count(path) != 0));
  }
}

TEST_CASE("Every picture is shown by a document", "[docs]") {
  namespace fs = std::filesystem;
  std::set<std::string> shown;
  for (const auto& [path, document] : AllDocuments()) {
    for (const Span& link : document.links) {
      shown.insert(fs::path(link.text).filename());
    }
  }
  size_t pictures = 0;
  for (const char* dir : {"docs/pictures", "benchmarks/results"}) {
    for (const auto& entry :
         fs::directory_iterator(std::string(SSTFERRY_SOURCE_DIR "/") + dir)) {
      if (entry.path().extension() == ".png") {
        INFO(entry.path());
        REQUIRE(shown.count(entry.path().filename()) != 0);
        ++pictures;
      }
    }
  }
  REQUIRE(pictures > 10);
}

}  // namespace
}  // namespace sstferry::links_test
