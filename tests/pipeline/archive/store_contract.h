// What every store does, as one test that each of them passes.
#pragma once

#include "pipeline/archive/store.h"

namespace sstferry {

// Runs the contract with Catch2's checks. `store` has no object yet.
// `is_exact`: false for a server like moto, which takes bytes of another digest
// and tells one time for all uploads.
void CheckStoreContract(ObjectStore* store, bool is_exact = true);

// `clients` clients put one new key if it is absent, all at once. Returns how
// many were told kOk; all others were told kExists.
int RaceToPut(const std::vector<ObjectStore*>& clients,
              const std::string& key);

}  // namespace sstferry
