// Checks the lists of devices that programs give to strategies, cross-device operations and the input library.
#pragma once

#include <string_view>
#include <vector>

namespace tandem {

class Device;

// Returns the list. ValueError for a null pointer in it, naming its place and `whose` list it is: "a strategy".
std::vector<Device*> checked_devices(std::vector<Device*> devices, std::string_view whose);

}  // namespace tandem
