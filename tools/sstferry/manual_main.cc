// The program sstferry_manuals, which the build runs. "sstferry_manuals
// OUT_DIR" generates OUT_DIR/commands.md, OUT_DIR/man/ and OUT_DIR/completions/
// from the tables of options.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tools/sstferry/completion.h"
#include "tools/sstferry/manual.h"

namespace {

namespace fs = std::filesystem;

bool Write(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    std::fprintf(stderr, "sstferry_manuals: %s: could not be written\n",
                 path.c_str());
  }
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: sstferry_manuals OUT_DIR\n", stderr);
    return 2;
  }
  const fs::path out = argv[1];
  bool ok = Write(out / "commands.md", sstferry::CommandsMarkdown()) &&
            Write(out / "completions" / "sstferry.bash",
                  sstferry::BashCompletion()) &&
            Write(out / "completions" / "_sstferry",
                  sstferry::ZshCompletion());
  for (const sstferry::ManualPage& page :
       sstferry::ManualPages(SSTFERRY_VERSION)) {
    ok = ok && Write(out / "man" / page.file, page.text);
  }
  return ok ? 0 : 1;
}
