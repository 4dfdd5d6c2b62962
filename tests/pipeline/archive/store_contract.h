// The contract of stores, as a test that each store must pass.
#pragma once

#include "pipeline/archive/store.h"

namespace sstferry {

// Checks the contract with Catch2's checks. `store` must be empty. `is_exact`
// is false for servers like moto, which accept bytes with a wrong digest and
// report the same time for all uploads.
void CheckStoreContract(ObjectStore* store, bool is_exact = true);

// Lets all clients put the same new key "if absent" at once. Returns how many
// got kOk. All others got kExists.
int RaceToPut(const std::vector<ObjectStore*>& clients,
              const std::string& key);

}  // namespace sstferry
