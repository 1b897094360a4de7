// Checks the lists of devices that programs give to strategies, cross-device operations and the input library.
#pragma once

#include <string_view>
#include <vector>

namespace tandem {

class Device;
class Worker;

// Returns the list. ValueError for a null pointer in it, naming its place and `whose` list it is: "a strategy".
std::vector<Device*> checked_devices(std::vector<Device*> devices, std::string_view whose);

// Returns all compute devices of the worker, or its CPU where it has none.
std::vector<Device*> all_devices_of(Worker& worker);

}  // namespace tandem
