#include "tests/support/file_calls.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

namespace sstferry {
namespace {

constexpr int kNone = -1;

// A path argument and the descriptor argument that the path is relative to, as
// indexes into a call's arguments.
struct PathArgument {
  int dir;
  int path;
};

enum class LastLink {
  kNotFollowed,         // never
  kFollowed,            // always
  kUnlessToldOtherwise  // followed unless an argument contains one of told_by
};

struct FileCall {
  const char* name;
  std::vector<PathArgument> paths;
  LastLink last_link = LastLink::kNotFollowed;
  std::vector<std::string> told_by{};
};

const std::vector<FileCall>& KnownCalls() {
  static const std::vector<FileCall> calls = {
      {"open", {{kNone, 0}}, LastLink::kUnlessToldOtherwise,
       {"O_NOFOLLOW", "O_EXCL"}},
      {"openat", {{0, 1}}, LastLink::kUnlessToldOtherwise,
       {"O_NOFOLLOW", "O_EXCL"}},
      {"openat2", {{0, 1}}, LastLink::kUnlessToldOtherwise,
       {"O_NOFOLLOW", "O_EXCL", "RESOLVE_NO_SYMLINKS"}},
      {"creat", {{kNone, 0}}, LastLink::kFollowed},
      {"mkdir", {{kNone, 0}}},
      {"mkdirat", {{0, 1}}},
      {"rename", {{kNone, 0}, {kNone, 1}}},
      {"renameat", {{0, 1}, {2, 3}}},
      {"renameat2", {{0, 1}, {2, 3}}},
      {"unlink", {{kNone, 0}}},
      {"unlinkat", {{0, 1}}},
      {"rmdir", {{kNone, 0}}},
      {"truncate", {{kNone, 0}}, LastLink::kFollowed},
      {"chown", {{kNone, 0}}, LastLink::kFollowed},
      {"lchown", {{kNone, 0}}},
      {"fchownat", {{0, 1}}, LastLink::kUnlessToldOtherwise,
       {"AT_SYMLINK_NOFOLLOW"}},
      {"chmod", {{kNone, 0}}, LastLink::kFollowed},
      {"fchmodat", {{0, 1}}, LastLink::kFollowed},
      {"link", {{kNone, 0}, {kNone, 1}}},
      {"linkat", {{0, 1}, {2, 3}}},  // Judge() knows AT_SYMLINK_FOLLOW
      {"symlink", {{kNone, 1}}},
      {"symlinkat", {{1, 2}}},
      {"execve", {{kNone, 0}}, LastLink::kFollowed},
      {"execveat", {{0, 1}}, LastLink::kUnlessToldOtherwise,
       {"AT_SYMLINK_NOFOLLOW"}},
  };
  return calls;
}

// Calls that change the user of a thread, or the descriptors of a process.
constexpr char kStateCalls[] =
    "setresuid,setreuid,setuid,setfsuid,clone,?clone3,?fork,?vfork,dup,?dup2,"
    "dup3,fcntl,close,fchown";

struct Line {
  int thread = 0;
  std::string call;
  std::vector<std::string> arguments;
  std::string result;  // "3</a/b>", "-1 ENOENT (...)"
  std::string text;
  bool failed() const { return result.rfind("-1", 0) == 0; }
};

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Splits at commas outside of quotes and of brackets of all kinds.
std::vector<std::string> SplitArguments(const std::string& text) {
  std::vector<std::string> all(1);
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) {
      all.back() += c;
      all.back() += text[++i];
      continue;
    }
    quoted ^= c == '"';
    if (!quoted && (c == '<' || c == '{' || c == '[' || c == '(')) ++depth;
    // The "=>" that strace prints for a changed structure is no bracket.
    const bool is_arrow = c == '>' && i > 0 && text[i - 1] == '=';
    if (!quoted &&
        ((c == '>' && !is_arrow) || c == '}' || c == ']' || c == ')')) {
      --depth;
    }
    if (c == ',' && !quoted && depth == 0) {
      all.emplace_back();
      ++i;  // skips the space after the comma
    } else {
      all.back() += c;
    }
  }
  return all;
}

// Returns one line per finished call. Joins calls that strace printed in two
// parts ("unfinished" and "resumed").
std::vector<Line> LinesOf(const std::string& trace) {
  std::vector<Line> lines;
  std::map<int, std::string> unfinished;
  std::istringstream in(trace);
  std::string text;
  while (std::getline(in, text)) {
    Line line;
    size_t at = 0;
    while (at < text.size() && isdigit(static_cast<unsigned char>(text[at]))) {
      ++at;
    }
    line.thread = atoi(text.c_str());
    at = text.find_first_not_of(' ', at);
    if (at == std::string::npos) continue;
    text = text.substr(at);
    const size_t cut = text.find("<unfinished ...>");
    if (cut != std::string::npos) {
      unfinished[line.thread] = text.substr(0, cut);
      continue;
    }
    const std::string resumed = " resumed>";
    if (text.rfind("<... ", 0) == 0 && Holds(text, resumed)) {
      text = unfinished[line.thread] +
             text.substr(text.find(resumed) + resumed.size());
    }
    const size_t open = text.find('(');
    const size_t close = text.rfind(" = ");
    if (open == std::string::npos || close == std::string::npos ||
        close < open) {
      continue;  // a signal, or the end of a process
    }
    line.text = text;
    line.call = text.substr(0, open);
    line.result = text.substr(close + 3);
    std::string inside = text.substr(open + 1, close - open - 1);
    inside = inside.substr(0, inside.rfind(')'));
    line.arguments = SplitArguments(inside);
    lines.push_back(line);
  }
  return lines;
}

// Returns the path in "5</a/b>" or "AT_FDCWD</a/b>"; empty if there is none.
std::string PathOfDescriptor(const std::string& text) {
  const size_t open = text.find('<');
  const size_t close = text.rfind('>');
  return open == std::string::npos || close == std::string::npos || close < open
             ? ""
             : text.substr(open + 1, close - open - 1);
}

std::string Unquoted(const std::string& text) {
  const size_t begin = text.find('"');
  const size_t end = text.rfind('"');
  std::string path;
  for (size_t i = begin + 1; begin != std::string::npos && i < end; ++i) {
    if (text[i] == '\\') ++i;
    path += text[i];
  }
  return path;
}

bool IsAt(const std::string& path, const std::string& dir) {
  return path == dir || path.rfind(dir + "/", 0) == 0;
}

class Judge {
 public:
  explicit Judge(const std::string& place) : place_(place) {}

  FileCalls Run(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      FindChild(line);
    }
    for (const Line& line : lines) {
      Thread* const thread = ThreadOf(line.thread);
      if (thread->user == 0) {
        JudgeLine(line, *thread);
      }
      Follow(line, thread);
    }
    return result_;
  }

 private:
  using Descriptors = std::map<std::string, std::string>;  // number: path
  struct Thread {
    long user = 0;
    std::shared_ptr<Descriptors> descriptors =
        std::make_shared<Descriptors>();
  };
  struct Parent {
    int thread;
    bool shares;  // its descriptors
  };

  // Finds the parents first, because strace may print a child's first calls
  // before the end of the call that made the child.
  void FindChild(const Line& line) {
    if ((line.call == "clone" || line.call == "clone3" ||
         line.call == "fork" || line.call == "vfork") &&
        !line.failed()) {
      parents_[atoi(line.result.c_str())] = {line.thread,
                                             Holds(line.text, "CLONE_FILES")};
    }
  }

  Thread* ThreadOf(int id) {
    const auto found = threads_.find(id);
    if (found != threads_.end()) {
      return &found->second;
    }
    Thread made;
    const auto parent = parents_.find(id);
    if (parent != parents_.end() && parent->second.thread != id) {
      made = *ThreadOf(parent->second.thread);
      if (!parent->second.shares) {
        made.descriptors = std::make_shared<Descriptors>(*made.descriptors);
      }
    }
    return &threads_.emplace(id, made).first->second;
  }

  // Returns true if another account may change names in this directory.
  bool MayChange(const std::string& dir) const {
    if (!IsAt(dir, place_)) {
      return false;
    }
    for (const std::string& own : own_) {
      if (IsAt(dir, own)) return false;
    }
    return true;
  }

  // A directory, and the path that the call looks up from there.
  struct Walk {
    std::string at;
    std::string rest;
    bool by_descriptor = false;
  };

  std::optional<Walk> WalkOf(const Line& line, const Thread& thread,
                             const PathArgument& argument) const {
    if (argument.path >= static_cast<int>(line.arguments.size())) {
      return std::nullopt;
    }
    const std::string path =
        Unquoted(line.arguments[static_cast<size_t>(argument.path)]);
    const std::string open = "/proc/self/fd/";
    if (path.rfind(open, 0) == 0) {
      const size_t end = std::min(path.find('/', open.size()), path.size());
      const auto known = thread.descriptors->find(
          path.substr(open.size(), end - open.size()));
      return Walk{known == thread.descriptors->end() ? place_ : known->second,
                  path.substr(end), true};
    }
    if (!path.empty() && path[0] == '/') {
      return Walk{"", path, false};
    }
    const std::string dir =
        argument.dir == kNone
            ? "AT_FDCWD"
            : line.arguments[static_cast<size_t>(argument.dir)];
    // Tests use no paths relative to the working directory, so such a path
    // could be anywhere: treat it as inside the place.
    const std::string at = PathOfDescriptor(dir);
    return Walk{at.empty() ? place_ : at == "/" ? "" : at, path,
                dir.rfind("AT_FDCWD", 0) != 0};
  }

  // Returns why the lookups of one path are unsafe, or "". Sets *target to the
  // path that the call acts on.
  std::string WrongLookup(const Line& line, const FileCall& call,
                          const Walk& walk, std::string* target) const {
    const bool no_links = Holds(line.text, "RESOLVE_NO_SYMLINKS");
    bool follows = call.last_link == LastLink::kFollowed ||
                   Holds(line.text, "AT_SYMLINK_FOLLOW");
    if (call.last_link == LastLink::kUnlessToldOtherwise) {
      follows = true;
      for (const std::string& word : call.told_by) {
        follows &= !Holds(line.text, word);
      }
    }
    std::string wrong;
    std::string dir = walk.at;
    std::istringstream parts(walk.rest);
    std::string part;
    std::string pending;  // the component that may be the last one
    const auto look_up = [&](const std::string& name, bool is_last) {
      if (MayChange(dir) && !no_links && wrong.empty()) {
        const std::string what = "looks up \"" + name + "\" in " + dir;
        if (!walk.by_descriptor) {
          wrong = what + " by a path";
        } else if (!is_last) {
          wrong = what + " on the way to another name";
        } else if (follows) {
          wrong = what + " and follows a link there";
        }
      }
      dir += "/" + name;
    };
    while (std::getline(parts, part, '/')) {
      if (part.empty() || part == ".") continue;
      if (!pending.empty()) look_up(pending, false);
      pending = part;
    }
    if (!pending.empty()) look_up(pending, true);
    *target = dir;
    return wrong;
  }

  const FileCall* Known(const std::string& name) const {
    for (const FileCall& call : KnownCalls()) {
      if (name == call.name) return &call;
    }
    return nullptr;
  }

  void JudgeLine(const Line& line, const Thread& thread) {
    const FileCall* const call = Known(line.call);
    if (call == nullptr) {
      return;
    }
    ++result_.judged;
    std::vector<std::string> targets;
    for (const PathArgument& argument : call->paths) {
      const std::optional<Walk> walk = WalkOf(line, thread, argument);
      if (!walk.has_value()) continue;
      std::string target;
      const std::string wrong = WrongLookup(line, *call, *walk, &target);
      if (!wrong.empty()) {
        result_.offences.push_back(std::to_string(line.thread) + " " +
                                   line.text + ": " + wrong);
      }
      targets.push_back(target);
    }
    if (!line.failed()) {
      NoteOwn(line, targets);
    }
  }

  // Tracks the directories that root makes with write access for root alone,
  // until root changes their owner or mode.
  void NoteOwn(const Line& line, const std::vector<std::string>& targets) {
    const std::string last = line.arguments.back();
    if (line.call.rfind("mkdir", 0) == 0 &&
        (strtol(last.c_str(), nullptr, 8) & 022) == 0) {
      own_.insert(targets[0]);
    } else if (line.call == "rmdir" || Holds(line.text, "AT_REMOVEDIR")) {
      own_.erase(targets[0]);
    } else if (line.call.rfind("rename", 0) == 0 && targets.size() == 2) {
      Move(targets[0], targets[1]);
    } else if (Holds(line.call, "chown") || Holds(line.call, "chmod")) {
      if (!targets.empty()) own_.erase(targets[0]);
    }
  }

  void Move(const std::string& from, const std::string& to) {
    const auto moved = [&](const std::string& path) {
      return IsAt(path, from) ? to + path.substr(from.size()) : path;
    };
    std::set<std::string> own;
    for (const std::string& dir : own_) own.insert(moved(dir));
    own_ = own;
    for (auto& [id, thread] : threads_) {
      for (auto& [number, path] : *thread.descriptors) path = moved(path);
    }
  }

  void Follow(const Line& line, Thread* thread) {
    if (line.failed()) {
      return;
    }
    const auto become = [thread](const std::string& user) {
      const long id = atol(user.c_str());
      if (id != -1) thread->user = id;
    };
    if (line.call == "setresuid" || line.call == "setreuid") {
      become(line.arguments[1]);
    } else if (line.call == "setuid" || line.call == "setfsuid") {
      become(line.arguments[0]);
    } else if (line.call == "fchown") {
      own_.erase(PathOfDescriptor(line.arguments[0]));
    } else if (line.call == "close") {
      thread->descriptors->erase(
          std::to_string(atoi(line.arguments[0].c_str())));
    } else if (!PathOfDescriptor(line.result).empty()) {
      (*thread->descriptors)[std::to_string(atoi(line.result.c_str()))] =
          PathOfDescriptor(line.result);
    }
  }

  const std::string place_;
  std::map<int, Parent> parents_;
  std::map<int, Thread> threads_;
  std::set<std::string> own_;
  FileCalls result_;
};

}  // namespace

std::vector<std::string> StraceWords(const std::string& trace_file) {
  std::string traced = kStateCalls;
  for (const FileCall& call : KnownCalls()) {
    traced += std::string(",?") + call.name;
  }
  // With -D, the test's child is the traced process itself, not strace, so the
  // test can signal it and wait for it.
  return {"/usr/bin/strace", "-D", "-f", "-q", "-y", "-s", "4096",
          "-e", "signal=none", "-e", "trace=" + traced, "-o", trace_file};
}

FileCalls JudgeFileCalls(const std::string& trace, const std::string& place) {
  return Judge(place).Run(LinesOf(trace));
}

}  // namespace sstferry
