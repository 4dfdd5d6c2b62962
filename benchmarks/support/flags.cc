#include "benchmarks/support/flags.h"

#include <cstdio>
#include <cstdlib>

namespace sstferry::bench {

void WrongUsage(const std::string& message) {
  std::fprintf(stderr, "wrong usage: %s\n", message.c_str());
  std::exit(2);
}

Flags::Flags(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      if (!role_.empty()) WrongUsage("unexpected argument " + word);
      role_ = word;
      continue;
    }
    const size_t equals = word.find('=');
    if (equals != std::string::npos) {
      values_[word.substr(2, equals - 2)] = word.substr(equals + 1);
    } else if (i + 1 < argc && std::string(argv[i + 1]).rfind("--", 0) != 0) {
      values_[word.substr(2)] = argv[++i];
    } else {
      values_[word.substr(2)] = "";
    }
  }
}

std::string Flags::Text(const std::string& name, const std::string& fallback) {
  asked_.insert(name);
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : found->second;
}

std::string Flags::Required(const std::string& name) {
  std::string text = Text(name);
  if (text.empty()) WrongUsage("--" + name + " is needed");
  return text;
}

uint64_t Flags::Number(const std::string& name, uint64_t fallback) {
  const std::string text = Text(name);
  if (text.empty()) return fallback;
  char* end = nullptr;
  uint64_t number = std::strtoull(text.c_str(), &end, 10);
  const std::string suffix = end;
  static const std::map<std::string, uint64_t> kUnits = {
      {"", 1},           {"K", 1000},       {"M", 1000000},
      {"G", 1000000000}, {"Ki", 1ull << 10}, {"Mi", 1ull << 20},
      {"Gi", 1ull << 30}};
  const auto unit = kUnits.find(suffix);
  if (end == text.c_str() || unit == kUnits.end()) {
    WrongUsage("--" + name + ": not a number: " + text);
  }
  return number * unit->second;
}

bool Flags::Switch(const std::string& name, bool fallback) {
  asked_.insert(name);
  asked_.insert("no-" + name);
  if (values_.count("no-" + name) != 0) return false;
  return values_.count(name) != 0 ? true : fallback;
}

void Flags::Done() const {
  for (const auto& [name, value] : values_) {
    if (asked_.count(name) == 0) WrongUsage("unknown option --" + name);
  }
}

}  // namespace sstferry::bench
