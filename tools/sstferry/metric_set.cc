#include "tools/sstferry/metric_set.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "format/messages_any.h"
#include "format/printable.h"
#include "rocksdb/version.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

prometheus::ClientMetric MakeSeries(MetricKind kind,
                                    const MetricLabels& labels, double value) {
  prometheus::ClientMetric series;
  for (const auto& [name, text] : labels) {
    series.label.push_back({name, Printable(text)});
  }
  if (kind == MetricKind::kCounter) {
    series.counter.value = value;
  } else {
    series.gauge.value = value;
  }
  return series;
}

// Parses a label `name="value"` at the position *at of `line`, and moves *at
// behind the label. Removes the escapes from the value. Returns false if there
// is no label at *at.
bool ReadLabel(const std::string& line, size_t* at, MetricLabels* labels) {
  const size_t equals = line.find('=', *at);
  if (equals == std::string::npos || equals + 1 >= line.size() ||
      line[equals + 1] != '"') {
    return false;
  }
  std::string value;
  for (size_t i = equals + 2; i < line.size(); ++i) {
    if (line[i] == '"') {
      labels->emplace(line.substr(*at, equals - *at), std::move(value));
      *at = i + 1;
      return true;
    }
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      value += line[i] == 'n' ? '\n' : line[i];
    } else {
      value += line[i];
    }
  }
  return false;
}

struct Line {
  std::string name;
  MetricLabels labels;
  double value = 0;
};

// Parses a line that MetricSet::Text() has written for a series. Returns false
// for other lines, such as comments.
bool ReadLine(const std::string& text, Line* line) {
  const size_t open = text.find('{');
  if (open == std::string::npos || text[0] == '#') {
    return false;
  }
  line->name = text.substr(0, open);
  size_t at = open + 1;
  while (at < text.size() && text[at] != '}') {
    if (!ReadLabel(text, &at, &line->labels)) {
      return false;
    }
    at += at < text.size() && text[at] == ',' ? 1 : 0;
  }
  if (at + 2 >= text.size()) {
    return false;
  }
  const char* const number = text.c_str() + at + 2;
  char* end = nullptr;
  line->value = std::strtod(number, &end);
  return end != number && *end == '\0' && std::isfinite(line->value) &&
         line->value >= 0;
}

}  // namespace

std::map<std::string, std::string> SeriesBy(const std::string& label,
                                            const std::string& text) {
  std::map<std::string, std::string> series;
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    Line line;
    if (!ReadLine(one, &line)) {
      continue;
    }
    const auto its = line.labels.find(label);
    if (its != line.labels.end()) {
      series[its->second] += one + "\n";
    }
  }
  return series;
}

MetricSet::MetricSet(const MetricLabels& build_labels) {
  MetricLabels labels = {
      {"version", SoftwareVersion().substr(SoftwareVersion().find(' ') + 1)},
      {"rocksdb", rocksdb::GetRocksVersionAsString()},
      {"protocol", std::to_string(kProtocolVersion)}};
  labels.insert(build_labels.begin(), build_labels.end());
  Set(metric::kBuildInfo, labels, 1);
}

void MetricSet::Set(const MetricSpec& spec, const MetricLabels& labels,
                    double value) {
  metrics_[&spec][labels] = value;
}

void MetricSet::Add(const MetricSpec& spec, const MetricLabels& labels,
                    double value) {
  metrics_[&spec][labels] += value;
}

void MetricSet::SetDisk(const MetricSpec& free, const MetricSpec& size,
                        const MetricLabels& labels,
                        const std::string& directory) {
  struct statvfs info {};
  if (statvfs(directory.c_str(), &info) == 0 &&
      (info.f_flag & ST_RDONLY) == 0 && info.f_blocks > 0) {
    const auto block = static_cast<double>(info.f_frsize);
    Set(free, labels, block * static_cast<double>(info.f_bavail));
    Set(size, labels, block * static_cast<double>(info.f_blocks));
  }
}

void MetricSet::SetCertificates(const TlsFiles& files,
                                const MetricLabels& labels) {
  const CertificateEnds ends = EndsOfCertificates(files);
  for (const auto& [name, seconds] :
       {std::pair("cert", ends.cert_seconds), std::pair("ca", ends.ca_seconds)}) {
    MetricLabels its = labels;
    its["certificate"] = name;
    if (seconds != 0) {
      Set(metric::kCertificateEnd, its, static_cast<double>(seconds));
    }
  }
}

void MetricSet::KeepOnly(const std::string& label,
                         const std::set<std::string>& values) {
  for (auto& [spec, series] : metrics_) {
    std::erase_if(series, [&](const auto& one) {
      const auto its = one.first.find(label);
      return its != one.first.end() && !values.contains(its->second);
    });
  }
  std::erase_if(metrics_, [](const auto& one) { return one.second.empty(); });
}

bool MetricSet::Has(const MetricSpec& spec, const MetricLabels& labels) const {
  const auto series = metrics_.find(&spec);
  return series != metrics_.end() && series->second.contains(labels);
}

double MetricSet::Get(const MetricSpec& spec,
                      const MetricLabels& labels) const {
  const auto series = metrics_.find(&spec);
  if (series == metrics_.end()) {
    return 0;
  }
  const auto found = series->second.find(labels);
  return found == series->second.end() ? 0 : found->second;
}

void MetricSet::Restore(const std::string& text, const std::string& label,
                        const std::string& value, bool all) {
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    Line line;
    if (!ReadLine(one, &line)) {
      continue;
    }
    const auto spec = std::ranges::find(MetricSpec::All(), line.name,
                                        &MetricSpec::name);
    const auto its = line.labels.find(label);
    if (spec == MetricSpec::All().end() || !(all || (*spec)->lasts) ||
        *spec == &metric::kBuildInfo ||
        its == line.labels.end() || its->second != Printable(value)) {
      continue;
    }
    its->second = value;
    Set(**spec, line.labels, line.value);
  }
}

std::string MetricSet::Text() const {
  std::vector<prometheus::MetricFamily> families;
  for (const MetricSpec* spec : MetricSpec::All()) {
    const auto series = metrics_.find(spec);
    if (series == metrics_.end()) {
      continue;
    }
    const bool counts = spec->kind == MetricKind::kCounter;
    prometheus::MetricFamily family;
    family.name = spec->name;
    family.help = spec->help;
    family.type = counts ? prometheus::MetricType::Counter
                         : prometheus::MetricType::Gauge;
    for (const auto& [labels, value] : series->second) {
      family.metric.push_back(MakeSeries(spec->kind, labels, value));
    }
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace sstferry
