// The documents of the repository, as the tests of this room read them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sstferry {

// A fenced block.
struct Block {
  size_t line = 0;   // of its first line of content, from 1
  // "cpp", "toml", "sh" (may hold placeholders); empty: a terminal.
  std::string kind;
  std::vector<std::string> lines;
};

// A piece of a line outside of fenced blocks.
struct Span {
  size_t line = 0;
  std::string text;
};

struct Document {
  std::string path;  // from the repository's root
  size_t line_count = 0;
  std::vector<Block> blocks;
  std::vector<Span> codes;    // between backticks
  std::vector<Span> links;    // where they lead: "FILE", "FILE#ANCHOR", a URL
  std::vector<std::string> anchors;  // of headings, as hosting sites make them
};

Document ParseDocument(const std::string& path, const std::string& text);

// README.md, docs/**.md and the documents of the rooms, by path.
std::map<std::string, Document> AllDocuments();
std::string TextOfDocument(const std::string& path);
// A file or directory of the repository.
bool IsInRepository(const std::string& path);

// "PATH:LINE: WHAT\n" of each link that leads nowhere. `exists` answers for
// paths from the repository's root.
std::string BadLinks(const std::map<std::string, Document>& documents,
                     const std::function<bool(const std::string&)>& exists);

// The same of each piece of code that is a path of this repository, such as
// `pipeline/base/` or, in pipeline/README.md, `disk/durable.h`.
std::string BadPaths(const Document& document,
                     const std::function<bool(const std::string&)>& exists);

// The terminal's lines that a person types: prompts and what follows '#' are
// left out, lines that end with a backslash are joined, lists of commands are
// divided. Each is a list of words without quotes.
struct CommandLine {
  size_t line = 0;
  std::vector<std::string> words;
};
std::vector<CommandLine> CommandLines(const Block& block);

// The words of one line as a shell divides it: quotes are taken off, '#' begins
// a comment, "&&", "|", ";" and "&" are words.
std::vector<std::string> ShellWords(const std::string& line);

}  // namespace sstferry
