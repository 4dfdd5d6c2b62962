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

// Maps each value of `label` in `text` to the lines of the series with this
// value. The values are as in `text`, which Printable() has escaped.
std::map<std::string, std::string> SeriesBy(const std::string& label,
                                            const std::string& text);

// The series of one answer to Prometheus, or of one file. A value type.
// Contains sstferry_build_info from the start.
class MetricSet {
 public:
  // `build_labels` are added to the labels of sstferry_build_info, because a
  // collector that reads several files rejects duplicate series.
  explicit MetricSet(const MetricLabels& build_labels = {});

  void Set(const MetricSpec& spec, const MetricLabels& labels, double value);
  void Add(const MetricSpec& spec, const MetricLabels& labels, double value);
  // Sets the free bytes and the size of the file system that holds `directory`.
  // Does nothing if it cannot be read, or is read-only and so cannot fill up.
  void SetDisk(const MetricSpec& free, const MetricSpec& size,
               const MetricLabels& labels, const std::string& directory);
  // Sets when the certificates of `files` expire, if known.
  void SetCertificates(const TlsFiles& files, const MetricLabels& labels);
  // Removes the series in which `label` has a value other than these.
  void KeepOnly(const std::string& label, const std::set<std::string>& values);
  bool Has(const MetricSpec& spec, const MetricLabels& labels) const;
  // Returns 0 if there is no such series.
  double Get(const MetricSpec& spec, const MetricLabels& labels) const;

  // Restores the series in `text` whose label `label` has this value: those of
  // lasting metrics (MetricSpec::lasts); with `all`, those of all metrics
  // except sstferry_build_info. Ignores lines that it does not understand.
  void Restore(const std::string& text, const std::string& label,
               const std::string& value, bool all = false);

  std::string Text() const;

 private:
  using Series = std::map<MetricLabels, double>;
  std::map<const MetricSpec*, Series> metrics_;
};

}  // namespace sstferry
