// Holds the values of metrics, and formats them for Prometheus. A series is a
// metric with one combination of labels and one value.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sstferry/transport.h"
#include "tools/sstferry/metric_table.h"

namespace sstferry {

// The labels of a series: a value for each label name.
using MetricLabels = std::map<std::string, std::string>;

// Splits the series in `text` by the value of `label`. Returns the lines of
// `text` for each value. The values are as MetricSet::Text() wrote them, that
// is, escaped by Printable().
std::map<std::string, std::string> SeriesBy(const std::string& label,
                                            const std::string& text);

// The series of one metrics page or one metrics file. Can be copied. A new
// object already contains the metric sstferry_build_info.
class MetricSet {
 public:
  // Adds `build_labels` to the labels of sstferry_build_info. With these
  // labels, the files of several jobs have different series; node_exporter
  // rejects files with the same series.
  explicit MetricSet(const MetricLabels& build_labels = {});

  void Set(const MetricSpec& spec, const MetricLabels& labels, double value);
  void Add(const MetricSpec& spec, const MetricLabels& labels, double value);
  // Sets `free` and `size` to the free bytes and the size of the file system
  // that contains `directory`. Does nothing if the file system cannot be read.
  // Also does nothing if it is read-only, because it cannot fill up.
  void SetDisk(const MetricSpec& free, const MetricSpec& size,
               const MetricLabels& labels, const std::string& directory);
  // Sets the times at which the certificates in `files` expire. Sets nothing
  // for a certificate that cannot be read.
  void SetCertificates(const TlsFiles& files, const MetricLabels& labels);
  // Removes the series that have `label` with a value that is not in `values`.
  void KeepOnly(const std::string& label, const std::set<std::string>& values);
  bool Has(const MetricSpec& spec, const MetricLabels& labels) const;
  // Returns the value of a series, or 0 if the set does not contain the series.
  double Get(const MetricSpec& spec, const MetricLabels& labels) const;

  // Copies series from `text`, the old text of a metrics file, into this set.
  // Copies a series if `label` has this value and the metric is kept across
  // runs (MetricSpec::lasts). If `all` is true, copies series of all metrics
  // except sstferry_build_info. Ignores lines that it cannot parse.
  void Restore(const std::string& text, const std::string& label,
               const std::string& value, bool all = false);

  std::string Text() const;

 private:
  using Series = std::map<MetricLabels, double>;
  std::map<const MetricSpec*, Series> metrics_;
};

}  // namespace sstferry
