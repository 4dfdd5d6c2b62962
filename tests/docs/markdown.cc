#include "tests/docs/markdown.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

namespace sstferry {
namespace {

namespace fs = std::filesystem;

const char kFence[] = "```";

// Returns the anchor of a heading: "A *small* `Word`" gives "a-small-word".
std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

void AddHeading(const std::string& line, Document* document) {
  static const std::regex heading("#{1,6} +(.*)");
  std::smatch found;
  if (!std::regex_match(line, found, heading)) {
    return;
  }
  const std::string anchor = AnchorOf(found[1]);
  std::string unique = anchor;
  const std::vector<std::string>& taken = document->anchors;
  for (int i = 1;
       std::find(taken.begin(), taken.end(), unique) != taken.end(); ++i) {
    unique = anchor + "-" + std::to_string(i);
  }
  document->anchors.push_back(unique);
}

// Moves pieces of code (`...`) from a line to `document`, and returns the rest.
// So text inside code is not taken for a link.
std::string TakeCodes(const std::string& line, size_t number,
                      Document* document) {
  std::string rest;
  size_t at = 0;
  while (true) {
    const size_t open = line.find('`', at);
    const size_t close =
        open == std::string::npos ? open : line.find('`', open + 1);
    if (close == std::string::npos) {
      return rest + line.substr(at);
    }
    rest += line.substr(at, open - at);
    document->codes.push_back({number, line.substr(open + 1,
                                                   close - open - 1)});
    at = close + 1;
  }
}

void AddLinks(const std::string& line, size_t number, Document* document) {
  static const std::regex link("\\]\\(([^)\\s]*)\\)");
  for (std::sregex_iterator it(line.begin(), line.end(), link), last;
       it != last; ++it) {
    document->links.push_back({number, (*it)[1]});
  }
}

std::string WithoutPrompt(const std::string& line) {
  static const std::regex prompt("^ *(?:source|target)?[$#] +");
  return std::regex_replace(line, prompt, "");
}

bool EndsCommand(const std::string& word) {
  return word == "&&" || word == "|" || word == ";" || word == "&";
}

std::string BadLink(const Document& from, const std::string& link,
                    const std::map<std::string, Document>& documents,
                    const std::function<bool(const std::string&)>& exists) {
  if (link.starts_with("https://") || link.starts_with("http://")) {
    return "";
  }
  const size_t hash = std::min(link.find('#'), link.size());
  const std::string file = link.substr(0, hash);
  const std::string path =
      file.empty()
          ? from.path
          : (fs::path(from.path).parent_path() / file).lexically_normal()
                .generic_string();
  if (path.starts_with("..") || !exists(path)) {
    return "there is no " + path;
  }
  if (hash == link.size()) {
    return "";
  }
  const auto target = documents.find(path);
  if (target == documents.end()) {
    return path + " is no document with headings";
  }
  const std::string anchor = link.substr(hash + 1);
  const std::vector<std::string>& anchors = target->second.anchors;
  return std::find(anchors.begin(), anchors.end(), anchor) == anchors.end()
             ? path + " has no heading for #" + anchor
             : "";
}

}  // namespace

Document ParseDocument(const std::string& path, const std::string& text) {
  Document document;
  document.path = path;
  std::istringstream stream(text);
  bool fenced = false;
  for (std::string line; std::getline(stream, line);) {
    const size_t number = ++document.line_count;
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    if (line.compare(begin, 3, kFence) == 0) {
      fenced = !fenced;
      if (fenced) {
        document.blocks.push_back({number + 1, line.substr(begin + 3), {}});
      }
    } else if (fenced) {
      document.blocks.back().lines.push_back(line);
    } else {
      AddHeading(line, &document);
      AddLinks(TakeCodes(line, number, &document), number, &document);
    }
  }
  if (fenced) {
    throw std::runtime_error(path + ": a fenced block has no end");
  }
  return document;
}

std::string TextOfDocument(const std::string& path) {
  std::ifstream file(fs::path(SSTFERRY_SOURCE_DIR) / path, std::ios::binary);
  if (!file) {
    throw std::runtime_error(path + ": expected a document, found none");
  }
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::map<std::string, Document> AllDocuments() {
  std::set<std::string> paths = {
      "README.md",          "CHANGELOG.md",       "benchmarks/README.md",
      "benchmarks/RESULTS.md", "format/rocksdb/README.md",
      "pipeline/README.md", "pipeline/wire/SECURITY.md",
      "SECURITY.md"};
  for (const char* folder : {"docs", "docs/internals", "format", "tests"}) {
    const fs::path root = SSTFERRY_SOURCE_DIR;
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") {
        paths.insert(fs::relative(entry.path(), root).generic_string());
      }
    }
  }
  std::map<std::string, Document> documents;
  for (const std::string& path : paths) {
    documents[path] = ParseDocument(path, TextOfDocument(path));
  }
  return documents;
}

bool IsInRepository(const std::string& path) {
  return fs::exists(fs::path(SSTFERRY_SOURCE_DIR) / path);
}

std::string BadLinks(const std::map<std::string, Document>& documents,
                     const std::function<bool(const std::string&)>& exists) {
  std::string bad;
  for (const auto& [path, document] : documents) {
    for (const Span& link : document.links) {
      const std::string what =
          BadLink(document, link.text, documents, exists);
      if (!what.empty()) {
        bad += path + ":" + std::to_string(link.line) + ": (" + link.text +
               "): " + what + "\n";
      }
    }
  }
  return bad;
}

std::string BadPaths(const Document& document,
                     const std::function<bool(const std::string&)>& exists) {
  static const std::regex from_root(
      "(?:benchmarks|cmake|docs|format|pipeline|tests|tools)/[\\w./-]*");
  static const std::regex from_pipeline(
      "(?:base|operation|options|source|target|wire)/[\\w./-]*");
  std::string bad;
  for (const Span& code : document.codes) {
    std::string path = code.text.substr(0, code.text.find(' '));
    if (document.path == "pipeline/README.md" &&
        std::regex_match(path, from_pipeline)) {
      path = "pipeline/" + path;
    }
    if (std::regex_match(path, from_root) && !exists(path)) {
      bad += document.path + ":" + std::to_string(code.line) +
             ": there is no " + path + "\n";
    }
  }
  return bad;
}

std::vector<std::string> ShellWords(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool has_word = false;
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      has_word = true;
    } else if (c == ' ' || c == '\t') {
      if (has_word) {
        words.push_back(word);
      }
      word.clear();
      has_word = false;
    } else if (c == '#' && !has_word) {
      break;
    } else if (c == ';') {
      if (has_word) {
        words.push_back(word);
      }
      words.push_back(";");
      word.clear();
      has_word = false;
    } else {
      word += c;
      has_word = true;
    }
  }
  if (quote != '\0') {
    throw std::runtime_error("a quote has no end: " + line);
  }
  if (has_word) {
    words.push_back(word);
  }
  return words;
}

std::vector<CommandLine> CommandLines(const Block& block) {
  std::vector<CommandLine> commands;
  for (size_t i = 0; i < block.lines.size(); ++i) {
    const size_t number = block.line + i;
    std::string line = block.lines[i];
    while (line.ends_with("\\") && i + 1 < block.lines.size()) {
      line.back() = ' ';
      line += block.lines[++i];
    }
    commands.push_back({number, {}});
    for (const std::string& word : ShellWords(WithoutPrompt(line))) {
      if (EndsCommand(word)) {
        commands.push_back({number, {}});
      } else {
        commands.back().words.push_back(word);
      }
    }
  }
  std::erase_if(commands, [](const CommandLine& command) {
    return command.words.empty();
  });
  return commands;
}

}  // namespace sstferry
