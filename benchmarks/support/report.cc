#include "benchmarks/support/report.h"

#include <cstdio>
#include <fstream>

namespace sstferry::bench {

namespace {

uint64_t PeakRssBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:") {
      uint64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

}  // namespace

std::string JsonText(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

void Report::AddRaw(const std::string& key, const std::string& json) {
  members_.push_back(JsonText(key) + ": " + json);
}

void Report::Add(const std::string& key, uint64_t value) {
  AddRaw(key, std::to_string(value));
}

void Report::Add(const std::string& key, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6f", value);
  AddRaw(key, text);
}

void Report::Add(const std::string& key, bool value) {
  AddRaw(key, value ? "true" : "false");
}

void Report::Add(const std::string& key, const std::string& value) {
  AddRaw(key, JsonText(value));
}

int Report::Finish(const rocksdb::Status& status) {
  Add("peak_rss_bytes", PeakRssBytes());
  Add("status", status.ToString());
  std::string line;
  for (const std::string& member : members_) {
    line += (line.empty() ? "{" : ", ") + member;
  }
  std::printf("%s}\n", line.c_str());
  std::fflush(stdout);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace sstferry::bench
