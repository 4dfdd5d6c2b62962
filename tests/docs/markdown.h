// Parses the repository's documents for the tests of this directory.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sstferry {

// A fenced code block.
struct Block {
  size_t line = 0;   // of the first line of content, from 1
  // "cpp", "toml", "sh" (may contain placeholders); empty: a terminal session.
  std::string kind;
  std::vector<std::string> lines;
};

// A piece of a line outside fenced blocks.
struct Span {
  size_t line = 0;
  std::string text;
};

struct Document {
  std::string path;  // from the repository's root
  size_t line_count = 0;
  std::vector<Block> blocks;
  std::vector<Span> codes;    // between backticks
  std::vector<Span> links;    // targets: "FILE", "FILE#ANCHOR", a URL
  std::vector<std::string> anchors;  // of headings, as GitHub makes them
};

Document ParseDocument(const std::string& path, const std::string& text);

// Returns README.md, docs/**.md and the documents of other directories, by
// path.
std::map<std::string, Document> AllDocuments();
std::string TextOfDocument(const std::string& path);
// Returns true if the path is a file or directory of the repository.
bool IsInRepository(const std::string& path);

// Returns "PATH:LINE: WHAT\n" for each broken link. `exists` takes paths from
// the repository's root.
std::string BadLinks(const std::map<std::string, Document>& documents,
                     const std::function<bool(const std::string&)>& exists);

// Returns the same for each piece of code that looks like a path of this
// repository but does not exist. Examples of such paths: `pipeline/base/` or,
// in pipeline/README.md, `disk/durable.h`.
std::string BadPaths(const Document& document,
                     const std::function<bool(const std::string&)>& exists);

// A command that a person types in a terminal session, as words without quotes.
struct CommandLine {
  size_t line = 0;
  std::vector<std::string> words;
};
// Returns the commands of a terminal session. Prompts and text after '#' are
// left out, lines that end with a backslash are joined, and lists of commands
// (`a && b`) are split.
std::vector<CommandLine> CommandLines(const Block& block);

// Splits one line into words like a shell: quotes are removed, '#' begins a
// comment, "&&", "|", ";" and "&" are words.
std::vector<std::string> ShellWords(const std::string& line);

}  // namespace sstferry
