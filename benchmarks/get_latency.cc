// Runs random GETs on two databases in turn, and prints the shape of their
// tables: is one of them slower to read than the other?
//
//   bench_get_latency --left DIR --right DIR [--rounds 15] [--gets 20000]
//
// For each database, prints p50 and p99: each is the median over all rounds.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/support/content.h"
#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "benchmarks/support/workload.h"
#include "rocksdb/table_properties.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;
using Clock = std::chrono::steady_clock;

constexpr size_t kSamples = 100'000;

struct Side {
  std::string name;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<std::string> keys;
  std::vector<double> p50;
  std::vector<double> p99;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Status Open(const std::string& dir, Side* side) {
  const Status s = OpenReadOnly(dir, &side->db);
  if (!s.ok()) return s;
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> it(side->db->NewIterator(read));
  std::string probe;
  for (size_t i = 0; i < kSamples; ++i) {
    FillKey(1, i, kSamples, &probe);
    it->Seek(probe);
    if (it->Valid()) side->keys.push_back(it->key().ToString());
  }
  if (side->keys.empty()) return Status::InvalidArgument(dir, "is empty");
  return it->status();
}

Status Round(uint64_t gets, Random* random, Side* side) {
  std::vector<double> micros;
  micros.reserve(gets);
  std::string value;
  for (uint64_t n = 0; n < gets; ++n) {
    const std::string& key = side->keys[static_cast<size_t>(
        NextShare(random) * static_cast<double>(side->keys.size()))];
    const Clock::time_point begin = Clock::now();
    const Status s = side->db->Get(rocksdb::ReadOptions(), key, &value);
    if (!s.ok()) return s;
    micros.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
  }
  std::sort(micros.begin(), micros.end());
  side->p50.push_back(micros[gets / 2]);
  side->p99.push_back(micros[gets * 99 / 100]);
  return Status::OK();
}

Status AddSide(const Side& side, Report* report) {
  rocksdb::TablePropertiesCollection tables;
  const Status s = side.db->GetPropertiesOfAllTables(&tables);
  uint64_t deletions = 0;
  uint64_t range_deletions = 0;
  for (const auto& [name, table] : tables) {
    deletions += table->num_deletions;
    range_deletions += table->num_range_deletions;
  }
  const Shape shape = ShapeOf(side.db.get());
  report->Add(side.name + "_p50_us", Median(side.p50));
  report->Add(side.name + "_p99_us", Median(side.p99));
  report->Add(side.name + "_bytes", shape.bytes);
  report->Add(side.name + "_files", shape.files);
  report->AddRaw(side.name + "_levels", LevelsJson(shape));
  report->Add(side.name + "_deletions", deletions);
  report->Add(side.name + "_range_deletions", range_deletions);
  return s;
}

Status Compare(const std::string& left, const std::string& right,
               uint64_t rounds, uint64_t gets, Report* report) {
  Side sides[2];
  sides[0].name = "left";
  sides[1].name = "right";
  Status s = Open(left, &sides[0]);
  if (s.ok()) s = Open(right, &sides[1]);
  Random random(1);
  for (Side& side : sides) {  // warm-up, not counted
    if (s.ok()) s = Round(gets, &random, &side);
    side.p50.clear();
    side.p99.clear();
  }
  for (uint64_t round = 0; s.ok() && round < rounds; ++round) {
    for (size_t i = 0; s.ok() && i < 2; ++i) {
      // Alternates the order, so that neither database is always second.
      s = Round(gets, &random, &sides[(round + i) % 2]);
    }
  }
  for (const Side& side : sides) {
    if (s.ok()) s = AddSide(side, report);
  }
  return s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  sstferry::bench::Flags flags(argc, argv);
  const std::string left = flags.Required("left");
  const std::string right = flags.Required("right");
  const uint64_t rounds = flags.Number("rounds", 15);
  const uint64_t gets = flags.Number("gets", 20000);
  flags.Done();
  if (rounds == 0 || gets == 0) {
    sstferry::bench::WrongUsage("--rounds and --gets must not be 0");
  }
  sstferry::bench::Report report;
  const rocksdb::Status s =
      sstferry::bench::Compare(left, right, rounds, gets, &report);
  return report.Finish(s);
}
