// Runs a fuzz target without libFuzzer, so that any compiler can build it:
// TARGET [--changes N] [--seed N] PATH...
// Runs every file in the paths once, then N changed ones. The same seed makes
// the same changes. If the process dies, the input is in last-input-TARGET
// beside the program, in the build directory.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// From the sanitizers' runtime, if there is one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(
    void (*callback)());

namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

constexpr size_t kMaxInputBytes = 64u << 10;

std::string input;
std::string input_path;

void SaveInput() {
  const int file =
      open(input_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && write(file, input.data(), input.size()) >= 0) {
    close(file);
  }
}

void SaveAndDie(int signal_number) {
  SaveInput();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void RunInput() {
  // Copies the input to a buffer of exactly its size, so that ASan detects
  // reads beyond it.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void Change(const std::vector<std::string>& corpus, Random* random) {
  for (uint64_t n = 1 + (*random)() % 4; n > 0; --n) {
    const size_t at = input.empty() ? 0 : (*random)() % input.size();
    const size_t span = 1 + (*random)() % 8;
    switch ((*random)() % 7) {
      case 0:
        input.insert(at, span, static_cast<char>((*random)()));
        break;
      case 1:
        input.erase(at, span);
        break;
      case 2: {  // the tail of another input
        const std::string& other = corpus[(*random)() % corpus.size()];
        input.resize(at);
        input += other.substr(std::min(at, other.size()));
        break;
      }
      case 3: {  // a piece of another input
        const std::string& other = corpus[(*random)() % corpus.size()];
        const size_t from = other.empty() ? 0 : (*random)() % other.size();
        input.insert(at, other.substr(from, (*random)() % 256));
        break;
      }
      case 4:
        for (size_t i = at; i < std::min(at + span, input.size()); ++i) {
          input[i] = (*random)() % 2 == 0 ? '\xff' : '\0';
        }
        break;
      default:
        if (!input.empty()) {
          input[at] ^= static_cast<char>(1u << ((*random)() % 8));
        }
        break;
    }
  }
  input.resize(std::min(input.size(), kMaxInputBytes));
}

std::vector<std::string> ReadCorpus(const std::vector<fs::path>& paths) {
  std::vector<std::string> corpus;
  const auto read = [&corpus](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  };
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      read(path);
      continue;
    }
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path)) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      read(file);
    }
  }
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t changes = 0;
  uint64_t seed = 1;
  std::vector<fs::path> paths;
  for (int i = 1; i < argc; ++i) {
    if (i + 1 < argc && strcmp(argv[i], "--changes") == 0) {
      changes = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      paths.emplace_back(argv[i]);
    }
  }
  const fs::path program = fs::canonical("/proc/self/exe");
  const std::string name = program.filename().string();
  input_path = (program.parent_path() / ("last-input-" + name)).string();
  for (const int signal_number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) {
    signal(signal_number, SaveAndDie);
  }
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(SaveInput);
  }
  const std::vector<std::string> corpus = ReadCorpus(paths);
  if (corpus.empty()) {
    fprintf(stderr, "%s: no input in the paths given\n", name.c_str());
    return 2;
  }
  for (const std::string& one : corpus) {
    input = one;
    RunInput();
  }
  Random random(seed);
  for (uint64_t changed = 0; changed < changes; ++changed) {
    input = corpus[random() % corpus.size()];
    Change(corpus, &random);
    RunInput();
  }
  printf("%s: %zu inputs, %llu changed ones\n", name.c_str(), corpus.size(),
         static_cast<unsigned long long>(changes));
  return 0;
}
