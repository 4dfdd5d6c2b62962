// The notes that a source announces with a plan.
#include <string>
#include <vector>

#include "format/limits.h"
#include "pipeline/serve/transfer_plan.h"
#include "tests/support/catch.h"

namespace sstferry::transfer_notes_test {

TEST_CASE("Notes of many families leave room for those of the transfer",
          "[source]") {
  const std::vector<std::string> own = {"one", "two"};
  REQUIRE(JoinNotes({"of the plan"}, own) ==
          std::vector<std::string>{"of the plan", "one", "two"});
  const std::vector<std::string> many =
      JoinNotes(std::vector<std::string>(2 * kMaxNotes, "family"), own);
  REQUIRE(many.size() == kMaxNotes - 1);
  REQUIRE(many[many.size() - 3] == "family");
  REQUIRE(many[many.size() - 2] == "one");
  REQUIRE(many.back() == "two");
}

}  // namespace sstferry::transfer_notes_test
