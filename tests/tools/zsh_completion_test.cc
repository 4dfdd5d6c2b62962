// Completions that zsh offers, in a new shell on a pseudo-terminal.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/scratch_dir.h"
#include "tools/sstferry/completion.h"

namespace sstferry::zsh_completion_test {
namespace {

// Makes zsh print every accepted candidate, and DO-NE at the end.
constexpr char kSetup[] = R"shell(PROMPT= RPROMPT=
fpath=($1 $fpath)
autoload -U compinit
compinit -D -u
zstyle ':completion:*' list no
compadd() {
  local -a hits
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
    builtin compadd -A hits "$@"
    print -r -- "OFFERED${(j: :)hits}"
  fi
  builtin compadd "$@"
}
offer() {
  zle complete-word
  print -r -- "DO""-NE"
}
zle -N offer
bindkey '^I' offer
PATH=$1:$PATH
cd $1/work
print -r -- "RE""-ADY"
)shell";

constexpr char kAsk[] = R"shell(zmodload zsh/zpty || exit 1
local line
zpty shell zsh -f -i
zpty -w shell "source $1/setup $1"
zpty -r -m shell line '*RE-ADY*' || exit 1
zpty -n -w shell "$2"$'\t'
zpty -r -m shell line '*DO-NE*' || exit 1
print -r -- $line
zpty -d shell
)shell";

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

bool HaveZsh() {
  return Process({"/bin/sh", "-c", "command -v zsh"}).Wait() == 0;
}

std::string Offered(const ScratchDir& dir, const std::string& line) {
  Process zsh({"/usr/bin/env", "zsh", "-f", dir / "ask", dir.path(), line});
  INFO(line << "\n" << zsh.err());
  REQUIRE(zsh.Wait() == 0);
  std::istringstream answer(zsh.out());
  const std::string mark = "OFFERED";
  std::string offered;
  for (std::string row; std::getline(answer, row);) {
    const size_t at = row.find(mark);
    if (at != std::string::npos) {
      offered = row.substr(at + mark.size());
      offered.erase(offered.find_last_not_of("\r\n") + 1);
    }
  }
  return offered;
}

}  // namespace

TEST_CASE("zsh completes commands, options, values, names and directories",
          "[tools][manual]") {
  if (!HaveZsh()) {
    WARN("zsh is missing: not checked with it");
    return;
  }
  const ScratchDir dir;
  std::filesystem::create_directories(dir / "work/data");
  WriteFile(dir / "work/dump.sst", "");
  WriteFile(dir / "_sstferry", ZshCompletion());
  WriteFile(dir / "setup", kSetup);
  WriteFile(dir / "ask", kAsk);
  WriteFile(
      dir / "sstferry",
      "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'plan sst://h:1/ --tls c' ] || "
      "[ \"$1 $2\" = 'plan unix:/s' ] && echo '  unix:/s:orders' && exit\n"
      "[ \"$1 $2 $3 $4\" = 'plan sst://h:1 --tls c' ] || exit 1\n"
      "echo 'sst://h:1 serves 2 databases:'\n"
      "echo '  sst://h:1/orders'\necho '  sst://h:1/users'\n");
  std::filesystem::permissions(dir / "sstferry",
                               std::filesystem::perms::owner_all);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"sstferry pu", "pull"},
      {"sstferry refresh --compac", "--compact"},
      {"sstferry serve --compac", ""},
      {"sstferry refresh --compact ", "auto none"},
      {"sstferry refresh --compact=n", "none"},
      {"sstferry pull da", "data"},
      {"sstferry pull --ca-file du", "dump.sst"},
      {"sstferry pull --wal-dir d", "data"},
      {"sstferry pull --tls c sst://h:1/", "orders users"},
      {"sstferry pull --tls c sst://h:1/u", "users"},
      {"sstferry pull unix:/s:", "orders"},
      {"sstferry help ve", "verify"},
      {"sstferry archive pu", "push"},
      {"sstferry archive prune --keep-la", "--keep-last"},
      {"sstferry archive push --keep", ""},
      {"sstferry cert is", "issue"},
      {"sstferry plan ref", "refresh"},
  };
  for (const auto& [line, expected] : rows) {
    INFO(line);
    REQUIRE(Offered(dir, line) == expected);
  }
}

}  // namespace sstferry::zsh_completion_test
