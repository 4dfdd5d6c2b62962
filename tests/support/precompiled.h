// The headers that most tests include, parsed once. No test includes this file
// by name, so that each test includes what it uses.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "sstferry/source.h"
#include "sstferry/target.h"
#include "tests/support/catch.h"
