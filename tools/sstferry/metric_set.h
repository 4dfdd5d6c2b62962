// Values of metrics, and their text in Prometheus' exposition format.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sstferry/transport.h"
#include "tools/sstferry/metric_table.h"

namespace sstferry {

// Label name -> value.
using MetricLabels = std::map<std::string, std::string>;

// The series of one answer to Prometheus, or of one file. A value type. Holds
// sstferry_build_info from the start.
class MetricSet {
 public:
  // `build_labels` come on top of those of sstferry_build_info: a collector of
  // several files takes no series twice.
  explicit MetricSet(const MetricLabels& build_labels = {});

  void Set(const MetricSpec& spec, const MetricLabels& labels, double value);
  void Add(const MetricSpec& spec, const MetricLabels& labels, double value);
  // Sets the free bytes and the size of the file system that holds
  // `directory`; nothing if it cannot be read, or is read-only: nobody fills
  // it.
  void SetDisk(const MetricSpec& free, const MetricSpec& size,
               const MetricLabels& labels, const std::string& directory);
  // Sets when the certificates of `files` end, as far as it is known.
  void SetCertificates(const TlsFiles& files, const MetricLabels& labels);
  // Removes the series that have the label with none of these values.
  void KeepOnly(const std::string& label, const std::set<std::string>& values);
  // 0 if there is no such series.
  double Get(const MetricSpec& spec, const MetricLabels& labels) const;

  // Sets the series of `text` whose metrics last (MetricSpec::lasts) and that
  // have the label `label` with this value. Leaves out whatever it does not
  // understand.
  void Restore(const std::string& text, const std::string& label,
               const std::string& value);

  std::string Text() const;

 private:
  using Series = std::map<MetricLabels, double>;
  std::map<const MetricSpec*, Series> metrics_;
};

}  // namespace sstferry
